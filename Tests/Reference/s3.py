"""S3 as boto3 sees it, for tests: `s3.py COMMAND ARGUMENT...` prints rows of fields with tabs between them.

S3_ENDPOINT, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and AWS_DEFAULT_REGION say where.
"""

import hashlib
import os
import sys

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config

s3 = boto3.client(
    "s3",
    endpoint_url=os.environ["S3_ENDPOINT"],
    config=Config(s3={"addressing_style": "path"}, signature_version="s3v4", retries={"total_max_attempts": 2}),
)


def row(*fields):
    print(*fields, sep="\t")


def put(bucket, key, path, part_size="0"):
    """In parts of `part_size` bytes if that is not 0."""
    if int(part_size) == 0:
        with open(path, "rb") as file:
            s3.put_object(Bucket=bucket, Key=key, Body=file, Metadata={"from": "boto3"}, ContentType="video/mp4")
        return
    size = int(part_size)
    config = TransferConfig(multipart_threshold=size, multipart_chunksize=size, max_concurrency=4)
    extra = {"Metadata": {"from": "boto3"}, "ContentType": "video/mp4"}
    s3.upload_file(path, bucket, key, ExtraArgs=extra, Config=config)


def get(bucket, key):
    answer = s3.get_object(Bucket=bucket, Key=key)
    digest, size = hashlib.sha256(), 0
    for piece in answer["Body"].iter_chunks(1 << 20):
        digest.update(piece)
        size += len(piece)
    row("sha256", digest.hexdigest())
    row("size", size)
    row("etag", answer["ETag"])
    row("contentType", answer.get("ContentType", ""))
    row("storageClass", answer.get("StorageClass", ""))
    row("versionId", answer.get("VersionId", ""))
    for name, value in answer["Metadata"].items():
        # Some stores write header names with capitals.
        row("x-amz-meta-" + name.lower(), value)


def list_objects(bucket, prefix=""):
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for entry in page.get("Contents", []):
            row(entry["Key"], entry["Size"])


def list_uploads(bucket):
    for page in s3.get_paginator("list_multipart_uploads").paginate(Bucket=bucket):
        for entry in page.get("Uploads", []):
            row(entry["Key"], entry["UploadId"])


def list_parts(bucket, key, upload):
    for page in s3.get_paginator("list_parts").paginate(Bucket=bucket, Key=key, UploadId=upload):
        for entry in page.get("Parts", []):
            row(entry["PartNumber"], entry["Size"], entry["ETag"])


def begin_upload(bucket, key, path=None):
    """An upload that stays open, with `path` as its only part."""
    upload = s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    if path:
        with open(path, "rb") as file:
            s3.upload_part(Bucket=bucket, Key=key, UploadId=upload, PartNumber=1, Body=file)
    row(upload)


def abort_upload(bucket, key, upload):
    s3.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload)


def delete(bucket, *keys):
    if len(keys) == 1:
        s3.delete_object(Bucket=bucket, Key=keys[0])
    else:
        answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in keys]})
        for entry in answer.get("Deleted", []):
            row(entry["Key"])


def copy(bucket, key, source, part_size="0"):
    """From `bucket/source`; in parts with UploadPartCopy if `part_size` is not 0."""
    if int(part_size) == 0:
        s3.copy_object(Bucket=bucket, Key=key, CopySource={"Bucket": bucket, "Key": source})
        return
    size = int(part_size)
    config = TransferConfig(multipart_threshold=size, multipart_chunksize=size)
    s3.copy({"Bucket": bucket, "Key": source}, bucket, key, Config=config)


def create_bucket(bucket):
    s3.create_bucket(Bucket=bucket)


globals()[sys.argv[1]](*sys.argv[2:])
