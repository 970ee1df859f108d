"""Runs the other programs of this directory: `server.py PORT`.

Their libraries are imported once, which takes longer than most calls. POST /PROGRAM with {"arguments", "environment"} runs
a program in a process of its own, and answers with what it printed.
"""

import json
import os
import runpy
import sys
import traceback
from contextlib import redirect_stdout
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import StringIO
from socketserver import ForkingMixIn

import boto3
import requests
import tusclient.client


class Server(ForkingMixIn, HTTPServer):
    max_children = 16
    request_queue_size = 64


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        os.environ.update(call["environment"])
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.path.basename(self.path))
        sys.argv = [program, *call["arguments"]]
        printed = StringIO()
        try:
            with redirect_stdout(printed):
                runpy.run_path(program, run_name="__main__")
            status, body = 200, printed.getvalue()
        except BaseException:
            status, body = 500, traceback.format_exc()
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format, *arguments):
        pass


# The first client of a session reads the description of the service.
boto3.client("s3", "us-east-1", aws_access_key_id="nobody", aws_secret_access_key="nothing")
Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
