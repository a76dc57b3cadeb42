"""The boot script on a stand-in for a machine: metadata, signed calls, a program by its hash."""

import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from exclave.stacks.aws.boot import build_boot_script
from exclave.stacks.aws.cloudformation.intrinsics import write_substitution
from tests.support.aws_stacks import make_model
from tests.support.emulated_aws.server import ACCOUNT, REGION, EmulatedAws

ROLE = "exclave-runner"
LAUNCHER = b"import pathlib, sys\npathlib.Path(sys.argv[0]).with_name('ran').write_text(' '.join(sys.argv[1:]))\n"


def pack_program(files: dict[str, bytes], link: str = "") -> bytes:
    out = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        if link:
            member = tarfile.TarInfo("link")
            member.type, member.linkname = tarfile.SYMTYPE, link
            archive.addfile(member)
    return out.getvalue()


PROGRAM = pack_program({"launch.py": LAUNCHER, "site/exclave/x.py": b"x = 1\n"})


class Site:
    """The metadata service and the vendor's address in one server."""

    def __init__(self, credentials: Any) -> None:
        self.credentials = credentials
        self.served = PROGRAM
        self.stages: list[str] = []
        self.notes: list[str] = []
        self.fetched = 0
        self.mirrored: list[str] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler())
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, path: str, token: str | None) -> bytes | None:
        """Return what the metadata service or the vendor answers; None: refused."""
        if path.startswith("/v1/stacks/package/"):
            self.fetched += 1
            return self.served
        if path.startswith("/mirror/"):
            self.mirrored.append(path)
            return self.served
        if token != "imds-token":
            return None
        if path.endswith("/security-credentials/"):
            return ROLE.encode()
        keys = {"Token": self.credentials["SessionToken"], **self.credentials}
        return json.dumps(keys, default=str).encode()

    def _make_handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def reply(self, data: bytes | None) -> None:
                self.send_response(401 if data is None else 200)
                self.end_headers()
                self.wfile.write(data or b"")

            def do_PUT(self) -> None:
                wanted = "X-aws-ec2-metadata-token-ttl-seconds" in self.headers
                self.reply(b"imds-token" if wanted else None)

            def do_GET(self) -> None:
                self.reply(site.answer(self.path, self.headers["X-aws-ec2-metadata-token"]))

            def do_POST(self) -> None:
                said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                site.stages.append(said["stage"])
                site.notes.append(said["note"])
                self.reply(b"{}")

        return Handler


class Machine:
    """A machine with a boot script, its disk in a folder."""

    def __init__(self, aws: EmulatedAws, folder: Path) -> None:
        self.aws, self.folder = aws, folder
        self.document: dict[str, Any] = {
            "enabled": "true",
            "proxy": "",
            "ca_bundle": "",
            "bundle": {"version": "0.1.0", **dict.fromkeys(("x86_64", "aarch64"), _hash(PROGRAM))},
        }
        made = aws.connect("secretsmanager").create_secret(
            Name="document", SecretString=json.dumps(self.document)
        )
        self.arn = made["ARN"]
        self.site = Site(_make_credentials(aws))
        threading.Thread(target=self.site.server.serve_forever, daemon=True).start()
        aws.check_signatures(on=True)

    def change_document(self, **changes: Any) -> None:
        self.document |= changes
        self.aws.check_signatures(on=False)
        self.aws.connect("secretsmanager").put_secret_value(
            SecretId=self.arn, SecretString=json.dumps(self.document)
        )
        self.aws.check_signatures(on=True)

    def boot(self) -> int:
        """Run the script; return its exit code."""
        self.site.stages.clear()
        script = self.folder / "boot.py"
        script.write_text(self._write_script())
        done = subprocess.run(
            [sys.executable, "-I", str(script)], capture_output=True, timeout=60, check=False
        )
        self.stderr = done.stderr.decode()
        return done.returncode

    def _write_script(self) -> str:
        """Return the script with the addresses and folders of this test."""
        body: Any = write_substitution(
            build_boot_script(make_model(runner_url=self.site.url)).parts
        )
        text = str(body["Fn::Sub"]).replace("${!", "${")
        for name, value in (
            ("${AWS::Region}", REGION),
            ("${AWS::URLSuffix}", "amazonaws.com"),
            ("${StackDocument}", self.arn),
        ):
            text = text.replace(name, value)
        constants = {
            "METADATA": f"{self.site.url}/latest",
            "SERVICE": f"{self.aws.url}/",
            "ROOT": self.folder / "opt",
            "CERTIFICATES": self.folder / "ca.pem",
            "TRIES": 2,
        }
        for name, value in constants.items():
            written = f"Path({str(value)!r})" if isinstance(value, Path) else repr(value)
            text, count = re.subn(rf"(?m)^{name} = .*$", f"{name} = {written}", text)
            assert count == 1, name
        return text

    @property
    def current(self) -> Path:
        return self.folder / "opt" / "current"


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _make_credentials(aws: EmulatedAws) -> Any:
    """Return credentials that may read secrets; the emulation knows no single one."""
    iam = aws.connect("iam")
    trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    allow = {"Effect": "Allow", "Action": "secretsmanager:GetSecretValue", "Resource": "*"}
    version = {"Version": "2012-10-17"}
    iam.create_role(
        RoleName=ROLE, AssumeRolePolicyDocument=json.dumps({**version, "Statement": [trust]})
    )
    iam.put_role_policy(
        RoleName=ROLE,
        PolicyName="read",
        PolicyDocument=json.dumps({**version, "Statement": [allow]}),
    )
    arn = f"arn:aws:iam::{ACCOUNT}:role/{ROLE}"
    sts = aws.connect("sts")
    return sts.assume_role(RoleArn=arn, RoleSessionName="i-0123456789abcdef0")["Credentials"]


@pytest.fixture
def machine(aws: EmulatedAws, tmp_path: Path) -> Iterator[Machine]:
    made = Machine(aws, tmp_path)
    yield made
    made.site.server.shutdown()
    made.site.server.server_close()


def test_a_machine_without_internet_gets_the_program_from_the_mirror(machine: Machine) -> None:
    machine.change_document(mirror=f"{machine.site.url}/mirror/")

    code = machine.boot()

    name = f"/mirror/runner-0.1.0-{os.uname().machine}.tar.gz"
    assert (code, machine.site.fetched, machine.site.mirrored) == (0, 0, [name])
    assert (machine.current / "ran").read_text() == "stack install-unit"


def test_a_fresh_machine_gets_the_program_and_starts_it(machine: Machine) -> None:
    code = machine.boot()

    assert code == 0
    assert machine.site.stages == ["booted", "installed"]
    assert (machine.current / "ran").read_text() == "stack install-unit"
    assert (machine.current / "site/exclave/x.py").is_file()
    boot = machine.folder / "opt/boot.json"
    assert json.loads(boot.read_text())["document"] == machine.arn
    assert boot.stat().st_mode & 0o077 == 0


def test_a_second_boot_fetches_nothing(machine: Machine) -> None:
    machine.boot()

    assert machine.boot() == 0
    assert machine.site.fetched == 1


def test_another_program_than_the_one_in_the_document_is_not_run(machine: Machine) -> None:
    machine.site.served = pack_program({"launch.py": LAUNCHER, "evil.py": b""})

    assert machine.boot() == 1
    assert machine.site.stages == ["booted", "failed"]
    assert not machine.current.exists()


def test_an_archive_that_would_leave_its_folder_is_refused(machine: Machine) -> None:
    for served in (pack_program({"../out.py": b""}), pack_program({}, link="/etc/passwd")):
        machine.site.served = served
        digests = dict.fromkeys(("x86_64", "aarch64"), _hash(served))
        machine.change_document(bundle={"version": "0.1.0", **digests})

        assert machine.boot() == 1
    assert not (machine.folder / "opt/versions/out.py").exists()
    assert not machine.current.exists()


def test_a_stopped_stack_starts_nothing(machine: Machine) -> None:
    machine.change_document(enabled="false")

    assert machine.boot() == 0
    assert machine.site.stages == ["booted", "disabled"]
    assert machine.site.fetched == 0


def test_a_machine_that_may_not_read_the_document_says_so_and_gives_up(machine: Machine) -> None:
    machine.site.credentials = {**machine.site.credentials, "SecretAccessKey": "wrong"}

    assert machine.boot() == 1
    assert machine.site.stages == ["booted", "waiting", "failed"]
    assert "403" in machine.site.notes[-2]
