"""A tus server of others: `tus_server.py tuspyserver|tussi PORT DIRECTORY`, with its uploads under /files."""

import os
import sys

import uvicorn
from fastapi import FastAPI, Request

kind, port, directory = sys.argv[1:]
os.makedirs(directory, exist_ok=True)
app = FastAPI()
if kind == "tuspyserver":
    from tuspyserver import create_tus_router

    app.include_router(create_tus_router(prefix="files", files_dir=directory))
else:
    from tussi import FilesystemStorage, TUSApp

    tus = TUSApp(
        storage=FilesystemStorage(directory=directory + "/uploads"),
        completed_dir=directory + "/completed",
        max_chunk_size=None,
    )

    @app.api_route("/files", methods=["HEAD", "PATCH", "POST", "OPTIONS", "DELETE"])
    @app.api_route("/files/{path:path}", methods=["HEAD", "PATCH", "POST", "OPTIONS", "DELETE"])
    async def serve(request: Request):
        return await tus.get_response(request.scope, request.receive)


uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="info")
