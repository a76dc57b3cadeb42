"""An app whose resources leave a trace on the machine, and a site with an install of it."""

import shutil
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.site import Site, clean_env, exclave, wait_until

ENDED = {"succeeded", "failed", "cancelled"}
COMPONENTS = ("red", "blue")
NAMES = ("first", "second", "third")

BARE = {
    "metadata.toml": 'version = "v2"\n',
    "runner.toml": 'runner_type = "local"\n',
    "sandbox.toml": '[public_repo]\nrepo = "."\ndirectory = "base"\n',
    "base/main.tf": 'resource "terraform_data" "base" {}\n',
}
"""An app with nothing but its sandbox."""
FILES = {
    **BARE,
    "inputs.toml": """
[[group]]
name = "all"

[[input]]
name = "round"
group = "all"
default = "0"
""",
}
COMPONENT = """
name = "{name}"
type = "terraform_module"

[public_repo]
repo = "."
directory = "{name}"

[vars]
round = "{{{{ .nuon.inputs.inputs.round }}}}"
"""
RESOURCE = """
resource "terraform_data" "{name}" {{
  input            = "{trace}"
  triggers_replace = [var.round]
  depends_on       = [{after}]
  provisioner "local-exec" {{
    command = "echo made $EXCLAVE_EXECUTION {part} terraform_data.{name} ${{self.id}} >> ${{self.input}}; sleep 0.2"
  }}
  provisioner "local-exec" {{
    when    = destroy
    command = "echo gone $EXCLAVE_EXECUTION {part} terraform_data.{name} ${{self.id}} >> ${{self.input}}"
  }}
}}
"""


def write_app(folder: Path, trace: Path) -> Path:
    """Write two components of three resources each; every new `round` replaces them all."""
    shutil.rmtree(folder, ignore_errors=True)
    files = dict(FILES)
    for part in COMPONENTS:
        files[f"components/{part}.toml"] = COMPONENT.format(name=part)
        text, after = 'variable "round" { type = string }\n', ""
        for name in NAMES:
            text += RESOURCE.format(name=name, trace=trace, after=after, part=part)
            after = f"terraform_data.{name}"
        files[f"{part}/main.tf"] = text
    for path, content in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return folder


@dataclass(frozen=True)
class Made:
    """One resource that really came into the world."""

    execution: str
    workspace: str
    address: str
    id: str


@dataclass
class World:
    """What really happened, as the resources themselves wrote it down."""

    made: list[Made] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)

    @property
    def alive(self) -> set[Made]:
        return {one for one in self.made if one.id not in self.gone}


@dataclass
class TerraformSite:
    """A site whose install runner does real Terraform."""

    site: Site
    orphans: list[dict[str, Any]] = field(default_factory=list)
    """What people were told about after each loss."""

    @property
    def trace(self) -> Path:
        return self.site.folder / "trace"

    def begin(self) -> None:
        """Sync and build the app, make an install, deploy everything once."""
        site = self.site
        site.begin_servers()
        queue = site.get("/v1/whoami")["org"]["build_queue_id"]
        site.start_runner("builder", queue)
        app = write_app(site.folder / "colours", self.trace)
        self.run_cli("apps", "create", "colours")
        self.run_cli("apps", "sync", str(app), "--wait")
        wish = {"name": "acme", "app": "colours", "approve_all": True, "provision": False}
        site.install = site.post("/v1/installs", wish)["id"]
        site.runner = site.start_runner("runner", site.install, TOOLS_DOWNLOAD="false")
        shown = self.await_end(self.start_work("reprovision"))
        assert shown["state"] == "succeeded", shown

    def run_cli(self, *words: str) -> None:
        env = clean_env({"URL": self.site.balancers[0].url, "TOKEN": self.site.token})
        done = subprocess.run(
            [*exclave(), *words],
            env=env,
            cwd=self.site.folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)

    def start_work(self, kind: str) -> str:
        path = f"/v1/installs/{self.site.install}/workflows"
        return str(self.site.post(path, {"kind": kind})["id"])

    def change_round(self, value: str) -> str:
        """Replace every resource of every component."""
        path = f"/v1/installs/{self.site.install}/inputs"
        return str(self.site.post(path, {"values": {"round": value}})["workflow"]["id"])

    def await_end(self, workflow: str) -> dict[str, Any]:
        def ended() -> Any:
            shown = self.site.get(f"/v1/workflows/{workflow}")
            return shown if shown["state"] in ENDED else None

        return dict(wait_until(ended, f"workflow {workflow} ends", 180))

    def list_jobs(self, workflow: str) -> list[dict[str, Any]]:
        listed = self.site.get("/v1/jobs", workflow_id=workflow, limit=200)["items"]
        return [self.site.get(f"/v1/jobs/{one['id']}") for one in listed]

    def list_states(self) -> dict[str, dict[str, Any]]:
        items = self.site.get(f"/v1/installs/{self.site.install}/tf-states")["items"]
        return {one["workspace"]: one for one in items if one["workspace"] != "sandbox"}

    def settle(self) -> list[str]:
        """Look at what lost applies left, as a person would, and release their lanes."""
        path = f"/v1/installs/{self.site.install}"
        self.orphans += self.site.get(f"{path}/orphans")["orphans"]
        lanes = self.site.get(path)["lanes"]
        blocked = [one["name"] for one in lanes if one["state"] == "needs_reconcile"]
        for lane in blocked:
            self.site.post(f"{path}/lanes/{lane}/release", {"reason": "the kill test looked"})
        return blocked

    def read_world(self) -> World:
        world = World()
        for line in self.trace.read_text().splitlines() if self.trace.exists() else ():
            word, execution, part, address, identity = line.split()
            if word == "made":
                world.made.append(Made(execution, f"component:{part}", address, identity))
            else:
                world.gone.add(identity)
        return world

    def find_doubles(self) -> list[tuple[str, str, str]]:
        """Find resources that one execution made more than once."""
        counts: dict[tuple[str, str, str], int] = defaultdict(int)
        for one in self.read_world().made:
            counts[one.execution, one.workspace, one.address] += 1
        return [key for key, count in counts.items() if count > 1]

    def is_told(self, one: Made) -> bool:
        """Tell whether people were told of a resource that is in no state."""
        return any(
            (told["workspace"], told["address"], told["execution_id"])
            == (one.workspace, one.address, one.execution)
            and told["id"] in {"", one.id}
            for told in self.orphans
        )
