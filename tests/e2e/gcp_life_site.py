"""A vendor's control plane with an app for Google Cloud, and a customer's project on the loopback."""

import hashlib
import io
import json
import sys
import zipfile
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
from tests.support.emulated_gcp import KEYS, EmulatedGcp, start_gcp
from tests.support.gcp_stacks import PROJECT, PROVIDERS, REGION
from tests.support.stand_ins.module import StandInModule
from tests.support.toy_cloud_stack import write_archives

_ROLE = """
[KIND_role]
name = "{{ .nuon.install.id }}-KIND"
description = "KIND"
display_name = "KIND"

[[KIND_role.policies]]
gcp_predefined_role = "roles/editor"
"""
_WHO = """#!PYTHON
import base64, json, os, urllib.request
def ask(url, **headers):
    return urllib.request.urlopen(urllib.request.Request(url, headers=headers)).read().decode()
host = os.environ["GCE_METADATA_HOST"]
account = f"http://{host}/computeMetadata/v1/instance/service-accounts/default"
google = {"Metadata-Flavor": "Google"}
email = ask(account + "/email", **google)
token = json.loads(ask(account + "/token", **google))["access_token"]
where, value = os.environ.get("PASSWORD"), "-"
if where:
    url = f"GCP/v1/{where}/versions/latest:access"
    reply = json.loads(ask(url, Authorization="Bearer " + token))
    value = base64.b64decode(reply["payload"]["data"]).decode()
with open("TRACE", "a") as trace:
    print(email, value, file=trace)
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
PASSWORD = "{{ .nuon.install_stack.outputs.db_password_secret_name }}"
"""
_FILES = {
    **BARE,
    "runner.toml": 'runner_type = "gcp"\n',
    "stack.toml": 'type = "gcp-terraform"\nname = "shop"\ndescription = "The runner of Shop"\n',
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
class GcpLife(CloudLife):
    """The vendor's side, and what the customer has."""

    gcp: EmulatedGcp

    def sync_app(self) -> None:
        """Sync and build the app."""
        folder, script = self.folder / "shop", self.folder / "whoami.py"
        places = {
            "PYTHON": sys.executable, "GCP/": f"{self.gcp.url}/", "TRACE": str(self.trace),
            "SCRIPT": str(script),
        }  # fmt: skip
        for path, text in _FILES.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_fill(text, places))
        script.write_text(_fill(_WHO, places))
        script.chmod(0o755)
        self.app.begin_app("shop", folder)

    def fetch_module(self, created: Mapping[str, Any], **values: Any) -> StandInModule:
        """Return the module as the customer gets it, who has nothing but the link."""
        file = next(file for file in created["files"] if file["name"] == "gcp.zip")
        served = httpx.get(file["url"], trust_env=False).raise_for_status().content
        assert hashlib.sha256(served).hexdigest() == file["sha256"]
        with zipfile.ZipFile(io.BytesIO(served)) as archive:
            files = {name: archive.read(name).decode() for name in archive.namelist()}
        module = StandInModule(self.folder / "customer", files, PROVIDERS)
        module.configure(**values)
        module.run("init", "-input=false")
        return module

    def apply(self, module: StandInModule, **values: Any) -> None:
        """Apply the module with the customer's values."""
        module.configure(**values)
        module.apply()
        self.gcp.load(module)

    def list_callers(self) -> list[tuple[str, str]]:
        """Return the accounts that jobs had since the last question, and what secret each read."""
        return [(email, value) for email, value in self.take_trace()]

    @contextmanager
    def start_machine(self) -> Iterator[KillableProcess]:
        """Start the machine of the Stack's group, with the file that its boot script writes."""
        group = self.gcp.find("google_compute_region_instance_group_manager")["runner"]
        assert group["target_size"] == 1
        file = self.folder / "boot.json"
        file.write_text(json.dumps(read_boot_facts(self.gcp)))
        words = ["-c", HURRIED, "runner", "--data", str(self.folder / "machine")]
        words += ["--boot", str(file)]
        env = clean_env(
            {
                "METADATA_URL": self.gcp.url, "CLOUD_URL": self.gcp.url, "LOG_LEVEL": "info",
                "TOOLS_DOWNLOAD": "false",
            }
        )  # fmt: skip
        runner = KillableProcess([sys.executable, *words], env, self.folder / "machine.log")
        runner.start()
        try:
            yield runner
        finally:
            runner.stop()


@contextmanager
def open_gcp_life(folder: Path) -> Iterator[GcpLife]:
    """Start a project, and a control plane that believes the tokens of its machines."""
    archives = folder / "archives"
    archives.mkdir()
    site = make_site(folder, timings=UNHURRIED)
    with start_gcp(PROJECT, f"{REGION}-b") as gcp:
        settings = {
            "ATTEST": "gcp",
            "ATTEST_GOOGLE_KEYS_URL": f"{gcp.url}{KEYS}",
            "BUNDLES": str(write_archives(archives)),
        }
        site.servers[0].env |= {f"EXCLAVE_{name}": value for name, value in settings.items()}
        life = GcpLife(AppSite(site), folder, gcp)
        try:
            life.sync_app()
            yield life
        finally:
            site.end()


def read_boot_facts(gcp: EmulatedGcp) -> dict[str, Any]:
    """Return what the boot script of the machine's template would write to the disk."""
    template = gcp.find("google_compute_region_instance_template")["runner"]
    return find_boot_facts(template["metadata"]["startup-script"])


def _fill(text: str, places: Mapping[str, str]) -> str:
    for name, value in places.items():
        text = text.replace(name, value)
    return text
