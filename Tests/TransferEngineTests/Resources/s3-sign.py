"""Signs the requests of a file (one JSON object a line) with botocore, and prints one JSON object a line."""

import datetime
import json
import sys

import botocore.auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials


class Signer(botocore.auth.S3SigV4Auth):
    """botocore's own, but for the hash of a payload that is not there."""

    def __init__(self, payload, *arguments):
        super().__init__(*arguments)
        self._payload = payload

    def payload(self, request):
        return self._payload


for line in open(sys.argv[1], encoding="utf-8"):
    case = json.loads(line)
    time = datetime.datetime.fromtimestamp(case["time"], datetime.timezone.utc).replace(tzinfo=None)
    botocore.auth.get_current_datetime = lambda *_, time=time: time
    request = AWSRequest(method=case["method"], url=case["url"])
    for name, value in case["headers"]:
        request.headers.add_header(name, value)
    credentials = Credentials(case["id"], case["secret"], case["token"] or None)
    Signer(case["payload"], credentials, "s3", case["region"]).add_auth(request)
    print(json.dumps({name.lower(): value for name, value in request.headers.items()
                      if name.lower() in ("authorization", "x-amz-date", "x-amz-security-token",
                                          "x-amz-content-sha256")}))
