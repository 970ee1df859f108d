"""Parses the answers of a file (one JSON object a line) as boto3 does, and prints what it found."""

import base64
import json
import sys

import botocore.parsers
import botocore.session

model = botocore.session.Session().get_service_model("s3")
for line in open(sys.argv[1], encoding="utf-8"):
    case = json.loads(line)
    operation = model.operation_model(case["operation"])
    parser = botocore.parsers.create_parser("rest-xml")
    answer = {"status_code": 200, "headers": {}, "body": case["body"].encode()}
    print(json.dumps(parser.parse(answer, operation.output_shape), default=str))
