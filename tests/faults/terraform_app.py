"""An app whose resources leave a trace on the machine, and a site with an install of it."""

import shutil
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.app_site import AppSite

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
class TerraformSite(AppSite):
    """A site whose install runner does real Terraform."""

    @property
    def trace(self) -> Path:
        return self.site.folder / "trace"

    def begin(self) -> None:
        """Sync and build the app, make an install, deploy everything once."""
        app = write_app(self.site.folder / "colours", self.trace)
        self.begin_app("colours", app)
        self.begin_install("colours", TOOLS_DOWNLOAD="false")
        self.deploy_all()

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
