"""What the lives of an install in different clouds share: the vendor's side, and what jobs note."""

import ast
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.app_site import AppSite
from tests.faults.site import clean_env, wait_until
from tests.support.command_line import run_exclave


@dataclass
class CloudLife:
    """The vendor's side of an install in a cloud."""

    app: AppSite
    folder: Path

    @property
    def trace(self) -> Path:
        """The file in which every job writes who it is in the cloud."""
        return self.folder / "trace"

    def run(self, *words: str) -> Any:
        """Run a command of the vendor; return what it prints as JSON."""
        site = self.app.site
        env = clean_env({"URL": site.balancers[0].url, "TOKEN": site.token})
        done = run_exclave(*words, "--json", folder=self.folder, env=env)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return json.loads(done.stdout)

    def wait_for_state(self, install: str, state: str) -> Any:
        """Wait until the newest version of the Stack has a state."""
        site = self.app.site

        def look() -> Any:
            version = site.get(f"/v1/installs/{install}/stack/versions")["items"][0]
            return version if version["state"] == state else None

        return wait_until(look, f"the Stack is {state}")

    def take_trace(self) -> list[list[str]]:
        """Return the words of each line that jobs have written since the last question."""
        lines = self.trace.read_text().splitlines() if self.trace.exists() else []
        self.trace.unlink(missing_ok=True)
        return [line.split() for line in lines]


def find_boot_facts(script: str) -> dict[str, Any]:
    """Return what a boot script would write to the disk."""
    for node in ast.parse(script).body:
        match node:
            case ast.AnnAssign(target=ast.Name(id="BOOT"), value=ast.expr() as value):
                return dict(ast.literal_eval(value))
    raise AssertionError("the boot script has no facts")
