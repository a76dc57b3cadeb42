"""The emulated AWS as a process of its own, on loopback."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import httpx
import pytest
from botocore.config import Config

REGION = "eu-west-1"
ACCOUNT = "123456789012"
_ROOT = Path(__file__).parents[3]


class EmulatedAws:
    """A running emulation, and clients of its services."""

    def __init__(self, url: str) -> None:
        self.url = url

    def connect(self, service: str) -> Any:
        """Return a client of a service."""
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
            config=Config(retries={"max_attempts": 1}, read_timeout=90, proxies={}),
        )

    def reset(self) -> None:
        """Forget everything."""
        self._post("reset", b"")

    def check_signatures(self, *, on: bool) -> None:
        """Refuse requests without a right signature and right, or let everything pass."""
        self._post("reset-auth", b"0" if on else b"1000000")

    def _post(self, verb: str, body: bytes) -> None:
        url = f"{self.url}/moto-api/{verb}"
        httpx.post(url, content=body, trust_env=False, timeout=60).raise_for_status()


@contextmanager
def start_aws() -> Iterator[EmulatedAws]:
    """Run the emulation until the block ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    argv = [sys.executable, "-m", "tests.support.emulated_aws", str(port)]
    hidden = {"AWS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"}
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    env |= {
        "MOTO_IAM_LOAD_MANAGED_POLICIES": "true",
        "INITIAL_NO_AUTH_ACTION_COUNT": "1000000",
    }
    quiet = subprocess.DEVNULL
    with subprocess.Popen(argv, cwd=_ROOT, env=env, stdout=quiet, stderr=quiet) as process:
        try:
            aws = EmulatedAws(f"http://127.0.0.1:{port}")
            _wait_until_up(aws, process)
            yield aws
        finally:
            process.kill()


def _wait_until_up(aws: EmulatedAws, process: "subprocess.Popen[bytes]") -> None:
    for _ in range(1200):
        try:
            aws.reset()
        except httpx.TransportError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
        else:
            return
    pytest.fail("the emulated AWS does not answer")
