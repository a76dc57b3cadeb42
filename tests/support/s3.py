"""A real S3 API server for tests, with one bucket."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from exclave.base.secrets import Secret
from exclave.storage.blobs.s3 import S3Place

BUCKET = "exclave-test"


@contextmanager
def start_s3() -> Iterator[str]:
    """Run the server and yield its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    argv = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(argv, stdout=quiet, stderr=quiet) as server:
        try:
            endpoint = f"http://127.0.0.1:{port}"
            make_bucket(endpoint)
            yield endpoint
        finally:
            server.kill()


def make_bucket(endpoint: str) -> None:
    for _ in range(600):
        try:
            httpx.put(f"{endpoint}/{BUCKET}", trust_env=False, timeout=30).raise_for_status()
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("the S3 API server does not answer")


def place(endpoint: str, *, bucket: str = BUCKET, prefix: str = "") -> S3Place:
    return S3Place(bucket, prefix, endpoint, "us-east-1", "test", Secret("test"))
