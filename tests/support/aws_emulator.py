"""AWS on the loopback: moto with signatures checked, and the metadata server of a machine."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
import httpx

from exclave.base.secrets import Secret
from exclave.runner.cloud.sigv4 import AwsKeys

ACCOUNT = "123456789012"
REGION = "eu-west-1"
_TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"},
        ],
    }
)


@dataclass
class Aws:
    """A moto server. Until `check_signatures`, it believes everybody."""

    url: str

    def make_role(self, name: str) -> None:
        self._open("iam").create_role(RoleName=name, AssumeRolePolicyDocument=_TRUST)

    def assume(self, role: str, session: str, account: str = ACCOUNT) -> AwsKeys:
        """Return keys of a role under a session name, as instance profiles get them."""
        arn = f"arn:aws:iam::{account}:role/{role}"
        made = self._open("sts").assume_role(RoleArn=arn, RoleSessionName=session)["Credentials"]
        return AwsKeys(
            made["AccessKeyId"], Secret(made["SecretAccessKey"]), Secret(made["SessionToken"])
        )

    def make_user(self, name: str) -> AwsKeys:
        iam = self._open("iam")
        iam.create_user(UserName=name)
        made = iam.create_access_key(UserName=name)["AccessKey"]
        return AwsKeys(made["AccessKeyId"], Secret(made["SecretAccessKey"]), Secret("none"))

    def check_signatures(self, *, on: bool = True) -> None:
        """Check the signatures and rights of all requests from now on, or of none."""
        allowed = "0" if on else "100000"
        reply = httpx.post(f"{self.url}/moto-api/reset-auth", content=allowed, trust_env=False)
        reply.raise_for_status()

    def _open(self, service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name=REGION,
            aws_access_key_id="root",
            aws_secret_access_key="x",
        )


@contextmanager
def start_aws() -> Iterator[Aws]:
    """Run moto as a process of its own and yield it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    argv = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    env = {**os.environ, "INITIAL_NO_AUTH_ACTION_COUNT": "100000"}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(argv, stdout=quiet, stderr=quiet, env=env) as server:
        try:
            aws = Aws(f"http://127.0.0.1:{port}")
            _wait_for(aws.url)
            yield aws
        finally:
            server.kill()


def _wait_for(url: str) -> None:
    for _ in range(600):
        try:
            httpx.get(f"{url}/moto-api/data.json", trust_env=False, timeout=30)
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError("moto does not answer")


@dataclass
class Imds:
    """The metadata server of a machine, with version 2 only: it wants a session token."""

    url: str
    role: str
    keys: AwsKeys
    machine: str = ""
    """The id of the machine; without it, it has no identity document."""
    session: str = "imds-session"
    asked: list[str] = field(default_factory=list)
    is_ending: bool = False
    """Whether the group of the machine terminates it."""

    def answer(self, method: str, path: str, headers: Mapping[str, str]) -> tuple[int, str]:
        self.asked.append(path)
        if method == "PUT" and path == "/latest/api/token":
            return 200, self.session
        if headers.get("x-aws-ec2-metadata-token") != self.session:
            return 401, ""
        roles = "/latest/meta-data/iam/security-credentials/"
        if path == roles:
            return 200, self.role
        if path == roles + self.role:
            assert self.keys.session_token is not None
            return 200, json.dumps(
                {
                    "AccessKeyId": self.keys.access_key,
                    "SecretAccessKey": self.keys.secret_key.reveal(),
                    "Token": self.keys.session_token.reveal(),
                    "Expiration": "2099-01-01T00:00:00Z",
                }
            )
        if path == "/latest/meta-data/autoscaling/target-lifecycle-state":
            return 200, "Terminated" if self.is_ending else "InService"
        if path == "/latest/dynamic/instance-identity/document" and self.machine:
            facts = {"instanceId": self.machine, "availabilityZone": f"{REGION}a"}
            return 200, json.dumps(facts)
        return 404, ""


@contextmanager
def start_imds(role: str, keys: AwsKeys, machine: str = "") -> Iterator[Imds]:
    """Serve the metadata of a machine with a role."""
    imds = Imds("", role, keys, machine)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply()

        def do_PUT(self) -> None:
            self._reply()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - of the base
            """Log nothing."""

        def _reply(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, text = imds.answer(self.command, self.path, headers)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    imds.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield imds
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
