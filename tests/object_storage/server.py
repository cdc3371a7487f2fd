"""Object storage on this machine: moto's server, which speaks S3 and checks who asks and what they may."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

BUCKET = "backups"
REGION = "eu-central-1"
_ACTIONS_BEFORE = 4
"""Requests that need no good signature: a user, its key, its policy, the bucket."""
_POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": "s3:*", "Resource": [f"arn:aws:s3:::{BUCKET}", f"arn:aws:s3:::{BUCKET}/*"]}
    ],
}
_DEADLINE_S = 60.0


@dataclass(frozen=True)
class ObjectStorage:
    """The server, with the one key that may use the bucket."""

    endpoint: str
    key: str
    secret: str

    @property
    def env(self) -> Mapping[str, str]:
        """What a tool for S3 finds it by."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def list_keys(self) -> list[str]:
        """The names of all that is in the bucket."""
        pages = self._client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        return [item["Key"] for page in pages for item in page.get("Contents", ())]

    def delete(self, key: str) -> None:
        self._client().delete_object(Bucket=BUCKET, Key=key)

    def put(self, key: str, content: bytes) -> None:
        self._client().put_object(Bucket=BUCKET, Key=key, Body=content)

    def read(self, key: str) -> bytes:
        body: bytes = self._client().get_object(Bucket=BUCKET, Key=key)["Body"].read()
        return body

    def _client(self) -> Any:
        return _make_client("s3", self.endpoint, self.key, self.secret)


def _make_client(service: str, endpoint: str, key: str = "unknown", secret: str = "unknown") -> Any:
    import boto3

    return boto3.client(
        service, endpoint_url=endpoint, region_name=REGION, aws_access_key_id=key, aws_secret_access_key=secret
    )


@contextlib.contextmanager
def object_storage() -> Iterator[ObjectStorage]:
    """A server with an empty bucket that ends with the block."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    env = {**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": str(_ACTIONS_BEFORE)}
    server = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(port)
        endpoint = f"http://127.0.0.1:{port}"
        iam = _make_client("iam", endpoint)
        iam.create_user(UserName="tvm")
        made = iam.create_access_key(UserName="tvm")["AccessKey"]
        iam.put_user_policy(UserName="tvm", PolicyName="backups", PolicyDocument=json.dumps(_POLICY))
        where = {"LocationConstraint": REGION}
        _make_client("s3", endpoint).create_bucket(Bucket=BUCKET, CreateBucketConfiguration=where)
        yield ObjectStorage(endpoint, made["AccessKeyId"], made["SecretAccessKey"])
    finally:
        server.kill()
        server.wait()


def _wait_for(port: int) -> None:
    end = time.monotonic() + _DEADLINE_S
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0):
            return
        time.sleep(0.05)
    raise AssertionError(f"no object storage within {_DEADLINE_S} s")
