"""The boot script on a stand-in for a machine of Azure: an identity's token, a vault, a program."""

import base64
import hashlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from exclave.stacks.azure.arm.template import build_group_template
from exclave.stacks.model import ProgramPins
from tests.integration.stacks.aws.test_boot import PROGRAM
from tests.support.azure_stacks import GIVEN, make_model
from tests.support.emulated_azure.deployment import Deployment
from tests.support.emulated_azure.services import EmulatedAzure, start_azure

DIGEST = hashlib.sha256(PROGRAM).hexdigest()
PEM = "-----BEGIN CERTIFICATE-----\nof the customer\n"


@dataclass
class Machine:
    """A machine of the scale set, its disk in a folder, and the vendor that it reports to."""

    azure: EmulatedAzure
    folder: Path
    stages: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    url: str = ""

    @property
    def certificates(self) -> Path:
        return self.folder / "ca.pem"

    def boot(self, **values: Any) -> int:
        """Apply the Stack with values of the customer, run the script; return its exit code."""
        model = make_model(runner_url=self.url, program=ProgramPins("0.1.0", DIGEST, DIGEST))
        deployment = Deployment(build_group_template(model), {**GIVEN, **values})
        self.azure.apply(deployment)
        script = self.folder / "boot.py"
        script.write_text(self._write_script(deployment))
        argv = [sys.executable, "-I", str(script)]
        return subprocess.run(argv, capture_output=True, timeout=60, check=False).returncode

    def _write_script(self, deployment: Deployment) -> str:
        """Return the script with the addresses and folders of this test."""
        profile = deployment.find("RunnerMachine")["properties"]["virtualMachineProfile"]
        text = base64.b64decode(profile["osProfile"]["customData"]).decode()
        local = f"fetch('{self.azure.url}/' + reference.removeprefix('https://') + f\"?"
        text, count = re.subn(r'fetch\(f"\{reference\}\?', lambda _: local, text)
        assert count == 1
        constants = {
            "METADATA": f"{self.azure.url}/metadata/identity/oauth2/token?",
            "ROOT": self.folder / "opt",
            "CERTIFICATES": self.certificates,
            "TRIES": 2,
        }
        for name, value in constants.items():
            written = f"Path({str(value)!r})" if isinstance(value, Path) else repr(value)
            text, count = re.subn(rf"(?m)^{name} = .*$", f"{name} = {written}", text)
            assert count == 1, name
        return text


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with start_azure() as azure:
        made = Machine(azure, tmp_path)

        class Vendor(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()
                self.wfile.write(PROGRAM)

            def do_POST(self) -> None:
                said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                made.stages.append(said["stage"])
                made.notes.append(said["note"])
                self.send_response(200)
                self.end_headers()

        server = ThreadingHTTPServer(("127.0.0.1", 0), Vendor)
        made.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield made
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_fresh_machine_gets_the_program_and_starts_it(machine: Machine) -> None:
    code = machine.boot()

    boot = json.loads((machine.folder / "opt/boot.json").read_text())
    assert (code, machine.stages) == (0, ["booted", "installed"])
    assert (machine.folder / "opt/current/ran").read_text() == "stack install-unit"
    assert boot["cloud"] == "azure"
    assert boot["identity"] in machine.azure.identities


def test_a_machine_of_a_stopped_stack_may_not_read_the_document(machine: Machine) -> None:
    code = machine.boot(runnerEnabled=False)

    assert (code, machine.stages) == (1, ["booted", "waiting", "failed"])
    assert "403" in machine.notes[-2]


def test_a_machine_trusts_the_certificates_of_the_customer(machine: Machine) -> None:
    machine.boot(caBundle=PEM)

    # What is given is no certificate, so that the script ends when it is to be trusted.
    assert machine.certificates.read_text() == PEM
