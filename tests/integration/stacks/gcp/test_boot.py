"""The boot script of a machine in Google Cloud, on what the module left behind when applied."""

import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from exclave.stacks.gcp.module import write_files
from exclave.stacks.model import ProgramPins
from tests.support.cloud_issuers import Authority
from tests.support.emulated_gcp import Answer, EmulatedGcp, start_gcp
from tests.support.gcp_stacks import GIVEN, PROJECT, PROVIDERS, REGION, make_model
from tests.support.stand_ins.module import StandInModule

LAUNCHER = b"import pathlib, sys\npathlib.Path(sys.argv[0]).with_name('ran').write_text(' '.join(sys.argv[1:]))\n"
CERTIFICATES = f"projects/{PROJECT}/secrets/certificates"


def pack_program() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        member = tarfile.TarInfo("launch.py")
        member.size = len(LAUNCHER)
        archive.addfile(member, io.BytesIO(LAUNCHER))
    return out.getvalue()


class Machine:
    """A machine of the Stack, its disk in a folder; the vendor answers at Google's address too."""

    def __init__(self, gcp: EmulatedGcp, folder: Path) -> None:
        self.gcp, self.folder = gcp, folder
        self.program = pack_program()
        self.stages: list[str] = []
        self.notes: list[str] = []
        gcp.others = self._answer_vendor
        digest = hashlib.sha256(self.program).hexdigest()
        model = make_model(runner_url=gcp.url, program=ProgramPins("0.1.0", digest, digest))
        self.module = StandInModule(folder / "module", write_files(model), PROVIDERS)
        self.module.configure(**GIVEN)
        self.module.run("init", "-input=false")

    def apply(self, **values: Any) -> None:
        self.module.configure(**{**GIVEN, **values})
        self.module.apply()
        self.gcp.load(self.module)

    def boot(self) -> int:
        """Run the script of the machine's template; return its exit code."""
        self.stages.clear()
        template = self.gcp.find("google_compute_region_instance_template")["runner"]
        text = template["metadata"]["startup-script"]
        constants = {
            "METADATA": f"{self.gcp.url}/computeMetadata/v1",
            "SECRETS": f"{self.gcp.url}/v1",
            "ROOT": self.folder / "opt",
            "CERTIFICATES": self.folder / "ca.pem",
            "TRIES": 2,
        }
        for name, value in constants.items():
            written = f"Path({str(value)!r})" if isinstance(value, Path) else repr(value)
            text, count = re.subn(rf"(?m)^{name} = .*$", f"{name} = {written}", text)
            assert count == 1, name
        script = self.folder / "boot.py"
        script.write_text(text)
        argv = [sys.executable, "-I", str(script)]
        return subprocess.run(argv, capture_output=True, timeout=60, check=False).returncode

    def _answer_vendor(self, path: str, body: Any) -> Answer | None:
        if path.startswith("/v1/stack/progress/"):
            self.stages.append(body["stage"])
            self.notes.append(body["note"])
            return 204, ""
        return (200, self.program) if path.startswith("/v1/stacks/package/") else None


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with start_gcp(PROJECT, f"{REGION}-b") as gcp:
        yield Machine(gcp, tmp_path)


def test_a_machine_gets_the_program_and_certificates_and_none_if_it_is_stopped(
    machine: Machine,
) -> None:
    """One test, since every start of a provider costs a second."""
    authority = Authority("The customer's proxy").pem.decode()
    machine.gcp.values[CERTIFICATES] = [authority]
    machine.apply(ca_bundle=CERTIFICATES)

    assert machine.boot() == 0

    assert machine.stages == ["booted", "installed"]
    current = machine.folder / "opt" / "current"
    assert (current / "ran").read_text() == "stack install-unit"
    assert (machine.folder / "ca.pem").read_text() == authority
    boot = json.loads((machine.folder / "opt" / "boot.json").read_text())
    assert (boot["cloud"], boot["region"]) == ("gcp", REGION)
    assert boot["document"] in machine.gcp.values

    machine.program = b"something else"
    (current.resolve() / "launch.py").unlink()
    (current.resolve() / "ran").unlink()
    current.resolve().rmdir()

    assert machine.boot() == 1, "the program is not the one that the document names"

    machine.apply(runner_enabled=False)

    assert machine.boot() == 1
    assert machine.stages == ["booted", "waiting", "failed"]
    assert "401" in machine.notes[-2], "the account of the machine is disabled"
