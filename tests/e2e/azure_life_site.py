"""A vendor's control plane with an app for Azure, and a customer's subscription on the loopback."""

import base64
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.aws_life_site import HURRIED
from tests.e2e.cloud_life import CloudLife, find_boot_facts
from tests.faults.app_site import AppSite
from tests.faults.site import UNHURRIED, KillableProcess, clean_env, make_site
from tests.faults.terraform_app import BARE
from tests.support.emulated_azure.deployment import Deployment
from tests.support.emulated_azure.services import EmulatedAzure, start_azure
from tests.support.toy_cloud_stack import write_archives

TEMPLATE = "azure.json"
"""The name under which the portal of Azure fetches it."""
_ROLE = """
[KIND_role]
name = "{{ .nuon.install.id }}-KIND"
description = "KIND"
display_name = "KIND"

[[KIND_role.policies]]
azure_built_in_roles = ["Contributor"]
"""
_WHO = """#!PYTHON
import base64, json, os, urllib.request
def ask(url, **headers):
    return json.load(urllib.request.urlopen(urllib.request.Request(url, headers=headers)))
mine = {"X-IDENTITY-HEADER": os.environ["IDENTITY_HEADER"]}
url = os.environ["IDENTITY_ENDPOINT"] + "?api-version=2019-08-01&resource=https://vault.azure.net"
token = ask(url, **mine)["access_token"]
claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
values = []
for where in ("PASSWORD", "SESSION"):
    place = os.environ.get(where, "").removeprefix("https://")
    bearer = {"Authorization": "Bearer " + token}
    values.append(ask(f"AZURE/{place}?api-version=7.4", **bearer)["value"] if place else "-")
with open("TRACE", "a") as trace:
    print(claims["xms_mirid"].rpartition("/")[2], *values, file=trace)
"""
_ACTION = """
name = "whoami"
timeout = "1m"

[[triggers]]
type = "manual"

[[steps]]
name = "ask"
inline_contents = "./whoami.py"

[steps.env_vars]
PASSWORD = "{{ .nuon.install_stack.outputs.db_password_secret_id }}"
SESSION = "{{ .nuon.install_stack.outputs.session_key_secret_id }}"
"""
_FILES = {
    **BARE,
    "runner.toml": 'runner_type = "azure"\n',
    "stack.toml": 'type = "azure-bicep"\nname = "shop"\ndescription = "The runner of Shop"\n',
    "permissions.toml": "".join(
        _ROLE.replace("KIND", kind) for kind in ("provision", "maintenance", "deprovision")
    ),
    "inputs.toml": """
[[group]]
name = "all"

[[input]]
name = "domain"
group = "all"
required = true
user_configurable = true
""",
    "secrets.toml": """
[[secret]]
name = "db_password"
display_name = "Database password"
required = true

[[secret]]
name = "session_key"
display_name = "Session key"
auto_generate = true
""",
    "base/main.tf": """
resource "terraform_data" "base" {
  provisioner "local-exec" { command = "SCRIPT" }
}
""",
    "actions/whoami.toml": _ACTION,
    "actions/whoami.py": _WHO,
}


@dataclass
class AzureLife(CloudLife):
    """The vendor's side, and what the customer has."""

    azure: EmulatedAzure

    def sync_app(self) -> None:
        """Sync and build the app."""
        folder, script = self.folder / "shop", self.folder / "whoami.py"
        places = {
            "PYTHON": sys.executable, "AZURE/": f"{self.azure.url}/", "TRACE": str(self.trace),
            "SCRIPT": str(script),
        }  # fmt: skip
        for path, text in _FILES.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_fill(text, places))
        script.write_text(_fill(_WHO, places))
        script.chmod(0o755)
        self.app.begin_app("shop", folder)

    def fetch_template(self, created: Mapping[str, Any]) -> dict[str, Any]:
        """Return the template as the customer gets it, who has nothing but the link."""
        file = next(file for file in created["files"] if file["name"] == TEMPLATE)
        served = httpx.get(file["url"], trust_env=False).raise_for_status()
        assert served.headers["access-control-allow-origin"] == "https://portal.azure.com"
        assert hashlib.sha256(served.content).hexdigest() == file["sha256"]
        return dict(json.loads(served.content))

    def apply(self, template: Mapping[str, Any], **values: Any) -> Deployment:
        """Apply the template with the customer's values."""
        deployment = Deployment(template, values)
        self.azure.apply(deployment)
        return deployment

    def list_callers(self) -> list[list[str]]:
        """Return the identities that jobs had since the last question, and what each read."""
        return self.take_trace()

    @contextmanager
    def start_machine(self, deployment: Deployment) -> Iterator[KillableProcess]:
        """Start the machine of the scale set, with the file that its boot script writes."""
        assert self.azure.capacity == 1
        file = self.folder / "boot.json"
        file.write_text(json.dumps(read_boot_facts(deployment)))
        words = ["-c", HURRIED, "runner", "--data", str(self.folder / "machine")]
        words += ["--boot", str(file)]
        env = clean_env(
            {
                "METADATA_URL": self.azure.url, "CLOUD_URL": self.azure.url,
                "LOG_LEVEL": "info", "TOOLS_DOWNLOAD": "false",
            }
        )  # fmt: skip
        runner = KillableProcess([sys.executable, *words], env, self.folder / "machine.log")
        runner.start()
        try:
            yield runner
        finally:
            runner.stop()


@contextmanager
def open_azure_life(folder: Path) -> Iterator[AzureLife]:
    """Start a subscription, and a control plane that believes what its machines prove."""
    archives = folder / "archives"
    archives.mkdir()
    site = make_site(folder, timings=UNHURRIED)
    with start_azure() as azure:
        roots = folder / "roots.pem"
        roots.write_bytes(azure.root.pem)
        settings = {
            "ATTEST": "azure",
            "ATTEST_AZURE_KEYS_URL": f"{azure.url}/keys",
            "ATTEST_ROOTS": str(roots),
            "BUNDLES": str(write_archives(archives)),
        }
        site.servers[0].env |= {f"EXCLAVE_{name}": value for name, value in settings.items()}
        life = AzureLife(AppSite(site), folder, azure)
        try:
            life.sync_app()
            yield life
        finally:
            site.end()


def read_boot_facts(deployment: Deployment) -> dict[str, Any]:
    """Return what the boot script of the machine would write to the disk."""
    machine = deployment.find("RunnerMachine")["properties"]["virtualMachineProfile"]
    script = base64.b64decode(machine["osProfile"]["customData"]).decode()
    return find_boot_facts(script)


def _fill(text: str, places: Mapping[str, str]) -> str:
    for name, value in places.items():
        text = text.replace(name, value)
    return text
