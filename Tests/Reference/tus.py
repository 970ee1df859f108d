"""tus as tuspy sees it, for tests: `tus.py upload CREATION-URL FILE CHUNK-SIZE [NAME=VALUE ...]` prints the upload's URL.

`tus.py offset URL` prints the offset of an upload.
"""

import sys

from tusclient import client


def upload(url, path, chunk_size, *metadata):
    uploader = client.TusClient(url).uploader(
        path, chunk_size=int(chunk_size), metadata=dict(pair.split("=", 1) for pair in metadata)
    )
    uploader.upload()
    print(uploader.url)


def offset(url):
    import requests

    print(requests.head(url, headers={"Tus-Resumable": "1.0.0"}, timeout=60).headers["Upload-Offset"])


globals()[sys.argv[1]](*sys.argv[2:])
