"""Prints the URLs that boto3 requests for the objects of a file (one JSON object a line)."""

import json
import sys

import botocore.session
from botocore.config import Config


class Sent(Exception):
    pass


def stop(request, **_):
    raise Sent(request.url)


session = botocore.session.Session()
session.set_credentials("id", "secret")
clients = {}
for line in open(sys.argv[1], encoding="utf-8"):
    case = json.loads(line)
    place = (case["endpoint"] or None, case["region"], "path" if case["pathStyle"] else "virtual")
    if place not in clients:
        clients[place] = session.create_client(
            "s3", region_name=place[1], endpoint_url=place[0],
            config=Config(s3={"addressing_style": place[2]}))
        clients[place].meta.events.register("before-send.s3", stop)
    try:
        clients[place].head_object(Bucket=case["bucket"], Key=case["key"])
    except Sent as sent:
        print(sent.args[0])
