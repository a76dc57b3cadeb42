"""A control plane with a built app whose apply waits in the midst, and customers with Stacks."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.e2e.stack_site import StackSite, end_stack
from tests.faults.app_site import ENDED, AppSite
from tests.faults.site import Site, make_site, wait_until
from tests.faults.terraform_app import BARE

WORKSPACE = "component:db"
GRACE_S = "10"
"""Enough for Terraform to end in peace on a busy machine."""
FILES = {
    **BARE,
    "inputs.toml": """
[[group]]
name = "all"

[[input]]
name = "folder"
group = "all"
required = true
""",
    "components/db.toml": """
name = "db"
type = "terraform_module"

[public_repo]
repo = "."
directory = "db"

[vars]
folder = "{{ .nuon.inputs.inputs.folder }}"
""",
    "db/main.tf": """
variable "folder" { type = string }
resource "terraform_data" "first" {
  provisioner "local-exec" { command = "echo $EXCLAVE_EXECUTION first >> ${var.folder}/made" }
}
resource "terraform_data" "slow" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" {
    command = "setsid ${var.folder}/hide ${var.folder} & wait"
  }
}
""",
}
HIDE = """#!/bin/sh
echo $EXCLAVE_EXECUTION slow >> $1/made
while ! test -e $1/gate; do sleep 0.1; done
"""
"""It leaves its process group and its session, as daemons do."""


@dataclass
class Customer:
    """An install whose runner is that of a Stack, and a folder that its resources write to."""

    stack: StackSite
    folder: Path
    script: str

    def start_work(self, kind: str = "reprovision") -> str:
        """Deploy everything, unless something else is asked for."""
        path = f"/v1/installs/{self.stack.install}/workflows"
        return str(self.stack.post(path, {"kind": kind})["id"])

    def list_made(self) -> list[tuple[str, str]]:
        """List what was really begun: execution and resource."""
        file = self.folder / "made"
        lines = file.read_text().splitlines() if file.exists() else []
        return [(line.split()[0], line.split()[1]) for line in lines]

    def await_midst(self) -> str:
        """Wait until an apply has made its first resource and works on the second."""
        found = wait_until(
            lambda: [one for one, name in self.list_made() if name == "slow"], "it applies"
        )
        return str(found[-1])

    def await_end(self, workflow: str) -> Any:
        """Wait for the end of a workflow; answer it, with the job of its last step."""

        def look() -> Any:
            shown = self.stack.get(f"/v1/workflows/{workflow}")
            return shown if shown["state"] in ENDED else None

        ended = wait_until(look, "the workflow has ended")
        return {**ended, "job": self.stack.get(f"/v1/jobs/{ended['steps'][-1]['job_id']}")}

    def get(self, path: str = "") -> Any:
        """Read something of the install."""
        return self.stack.get(f"/v1/installs/{self.stack.install}{path}")

    def list_known(self) -> dict[str, str]:
        """List what the newest state knows, by address."""
        newest = self.get(f"/tf-states/{WORKSPACE}")["newest"]
        return {one["address"]: one["id"] for one in newest["resources"]}

    def find_lane(self) -> str:
        lanes = self.get()["lanes"]
        return next(str(lane["state"]) for lane in lanes if lane["name"] == WORKSPACE)

    def await_polls(self) -> None:
        """Wait until the runner has asked for work once more, from beginning to end."""
        for _ in range(2):
            wait_until(partial(self._was_seen_since, self._find_seen()), "it asks for work")

    def _find_seen(self) -> str:
        return str(self.stack.find_runner()["seen_at"])

    def _was_seen_since(self, before: str) -> bool:
        return self._find_seen() != before


@contextmanager
def open_vendor(folder: Path, files: Mapping[str, str] = FILES, **builder: str) -> Iterator[Site]:
    """Serve an app that was synced and built; the words are settings of its build runner."""
    site = make_site(folder)
    for server in site.servers:
        server.env["EXCLAVE_CANCEL_GRACE_MUTATING_S"] = GRACE_S
    try:
        site.begin_servers()
        queue = site.get("/v1/whoami")["org"]["build_queue_id"]
        site.start_runner("builder", queue, **builder)
        for name, text in files.items():
            file = folder / "app" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        vendor = AppSite(site)
        vendor.run_cli("apps", "create", "app")
        vendor.run_cli("apps", "sync", str(folder / "app"), "--wait")
        yield site
    finally:
        site.end()


@contextmanager
def open_customer(
    site: Site, name: str, env: Mapping[str, str] | None = None
) -> Iterator[Customer]:
    """Make an install, and run its Stack as the customer does."""
    folder = site.folder / f"{name}-things"
    folder.mkdir()
    (folder / "hide").write_text(HIDE)
    (folder / "hide").chmod(0o755)
    inputs = {"folder": str(folder)}
    wish = {"name": name, "app": "app", "inputs": inputs, "approve_all": True, "provision": False}
    install = site.post("/v1/installs", wish)["id"]
    place = StackSite(site.folder / name, site.client, install, site.folder, env or {})
    with end_stack(place) as stack:
        script = stack.make_script()
        stack.run_script(script)
        stack.wait_for_presence("up")
        try:
            yield Customer(stack, folder, script)
        finally:
            (folder / "gate").touch()
