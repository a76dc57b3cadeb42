"""A Terraform module of ours with real Terraform, and providers that stand in for clouds."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.stand_ins.schema import read_version
from tests.support.stand_ins.servicer import JOURNAL
from tests.support.tools import need_terraform

ROOT = Path(__file__).parents[3]
NOTHING_TO_DO = 0
CHANGES = 2


def make_mirror(folder: Path, *names: str) -> Path:
    """Make a folder that Terraform installs the stand-in providers from."""
    for name in names:
        version = read_version(name)
        place = folder / "registry.terraform.io" / "hashicorp" / name / version / "linux_amd64"
        place.mkdir(parents=True)
        program = place / f"terraform-provider-{name}_v{version}"
        program.write_text(
            f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
            "from tests.support.stand_ins.program import main\nmain()\n"
        )
        program.chmod(0o755)
    return folder


class StandInModule:
    """A configuration that calls a module, in a folder of its own."""

    def __init__(
        self, folder: Path, files: Mapping[str, str], providers: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self.folder, self.providers = folder, providers
        for name, text in files.items():
            file = folder / "stack" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        mirror = json.dumps(str(make_mirror(folder / "mirror", *providers)))
        (folder / "rc").write_text(
            "disable_checkpoint = true\n"
            f"provider_installation {{\n  filesystem_mirror {{\n    path = {mirror}\n  }}\n}}\n"
        )

    @property
    def env(self) -> dict[str, str]:
        """The environment in which Terraform finds the stand-ins, and nothing else."""
        return {
            "PATH": os.pathsep.join([str(need_terraform().parent), os.environ["PATH"]]),
            "HOME": str(self.folder),
            "TF_CLI_CONFIG_FILE": str(self.folder / "rc"),
            JOURNAL: str(self.folder / "journal"),
        }

    def configure(self, **values: Any) -> None:
        """Write the values that the customer chooses."""
        body = {
            "provider": {name: dict(settings) for name, settings in self.providers.items()},
            "module": {"stack": {"source": "./stack", **values}},
            "output": {"outputs": {"value": "${module.stack.outputs}"}},
        }
        (self.folder / "main.tf.json").write_text(json.dumps(body))

    def run(self, *words: str, expected: int = NOTHING_TO_DO) -> str:
        """Run Terraform; return what it prints."""
        argv = [str(need_terraform()), *words, "-no-color"]
        done = subprocess.run(
            argv, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False
        )
        assert done.returncode == expected, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout + done.stderr

    def apply(self) -> None:
        """Apply without a question."""
        self.run("apply", "-auto-approve", "-input=false")

    def read_resources(self) -> dict[str, dict[str, Any]]:
        """Return the resources of the state, by their addresses in the module."""
        state = json.loads((self.folder / "terraform.tfstate").read_text())
        return {
            f"{resource['type']}.{resource['name']}": instance["attributes"]
            for resource in state["resources"]
            for instance in resource["instances"]
        }

    def read_journal(self) -> list[dict[str, Any]]:
        """Return every change that the providers were asked for, in order."""
        lines = (self.folder / "journal").read_text().splitlines()
        return [json.loads(line) for line in lines]
