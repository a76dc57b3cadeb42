"""A vendor's control plane with an app for AWS, and a customer's account on an emulated AWS."""

import base64
import hashlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from exclave.runner.cloud.sigv4 import AwsKeys
from tests.e2e.cloud_life import CloudLife, find_boot_facts
from tests.faults.app_site import AppSite
from tests.faults.site import UNHURRIED, KillableProcess, clean_env, make_site, wait_until
from tests.faults.terraform_app import BARE
from tests.support.aws_emulator import Aws, Imds, start_imds
from tests.support.aws_stacks import AppliedTemplate
from tests.support.emulated_aws.server import ACCOUNT, REGION, EmulatedAws, start_aws
from tests.support.toy_cloud_stack import write_archives

GIVEN = {"DbPasswordSecret": "v4lue-of-the-database", "InstallDomain": 'shop."acme".example'}
TEMPLATE = "aws.template.json"
HURRIED = """
import runpy
from exclave.runner.loops import document_watch
document_watch.READ_EVERY_S = 3.0
runpy.run_module("exclave", run_name="__main__")
"""
"""The runner, which reads the document more often than every half minute; else nothing differs."""
_ROLE = """
[KIND_role]
name = "{{ .nuon.install.id }}-KIND"
description = "KIND"
display_name = "KIND"

[[KIND_role.policies]]
managed_policy_name = "AdministratorAccess"
"""
_WHO = """#!PYTHON
import os, boto3
aws = {"endpoint_url": "AWS"}
arn = boto3.client("sts", **aws).get_caller_identity()["Arn"]
where, value = os.environ.get("PASSWORD_ARN"), "-"
if where:
    reply = boto3.client("secretsmanager", **aws).get_secret_value(SecretId=where)
    value = reply["SecretString"]
with open("TRACE", "a") as trace:
    print(arn, value, file=trace)
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
PASSWORD_ARN = "{{ .nuon.install_stack.outputs.db_password_arn }}"
"""
_SLOW = """#!/bin/sh
echo $$ >> STARTED
exec sleep 600
"""
_SLOW_ACTION = """
name = "NAME"
timeout = "10m"

[[triggers]]
type = "manual"

[[steps]]
name = "wait"
inline_contents = "./slow.sh"
"""
_FILES = {
    **BARE,
    "runner.toml": 'runner_type = "aws"\n',
    "stack.toml": """
type = "aws-cloudformation"
name = "shop-{{ .nuon.install.id }}"
description = "The runner of Shop"
""",
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
""",
    "base/main.tf": """
resource "terraform_data" "base" {
  provisioner "local-exec" { command = "APPLY" }
}
""",
    "actions/whoami.toml": _ACTION,
    "actions/whoami.py": _WHO,
    "actions/slow.sh": _SLOW,
    "actions/before_crash.toml": _SLOW_ACTION.replace("NAME", "before_crash"),
    "actions/before_wipe.toml": _SLOW_ACTION.replace("NAME", "before_wipe"),
}


@dataclass
class LifeMachine:
    """The machine of a Stack's group: its metadata server, and the runner's process."""

    imds: Imds
    runner: KillableProcess
    install: str
    data: Path

    def crash(self) -> None:
        """Kill the runner and nothing else, and start it again on the same disk."""
        self.runner.kill9()
        self.runner.start()

    def reboot_wiped(self, left: list[int]) -> None:
        """Lose power, with all processes, and come back with an empty disk."""
        self.runner.kill9()
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        shutil.rmtree(self.data)
        self.runner.start()

    def read_log(self, aws: EmulatedAws, kind: str) -> list[str]:
        """Return the events that the machine has written into the customer's log store."""
        page = aws.connect("logs").get_log_events(
            logGroupName=f"/exclave/{self.install}",
            logStreamName=f"{self.imds.machine}/{kind}",
            startFromHead=True,
        )
        return [json.loads(line["message"])["event"] for line in page["events"]]

    def end(self) -> None:
        """End it as its group does, which the machine learns shortly before."""
        self.imds.is_ending = True
        self.runner.stop()


@dataclass
class Life(CloudLife):
    """The vendor's side, and what the customer has."""

    aws: EmulatedAws
    apply: str = ""
    """What an apply runs; empty for a program that writes who it is in AWS."""
    keys: AwsKeys | None = None
    """What the machine that runs got from its metadata server."""
    app_name: str = "shop"

    @property
    def started(self) -> Path:
        """The file in which every start of a slow action leaves its process."""
        return self.folder / "started"

    def begin_slow(self, action: str) -> str:
        """Start an action that lasts until somebody ends it; return its job."""
        before = self.list_started()
        workflow = self.run("actions", "run", "acme", action)["id"]
        wait_until(lambda: len(self.list_started()) > len(before), "the action began")
        (job,) = (job for job in self.app.list_jobs(workflow) if job["kind"] == "action")
        return str(job["id"])

    def list_started(self) -> list[int]:
        """Return the processes of all slow actions that ever began."""
        lines = self.started.read_text().split() if self.started.exists() else []
        return [int(line) for line in lines]

    def wait_for_end_of(self, job: str) -> tuple[str, str]:
        """Wait until a job has ended; return how."""

        def look() -> Any:
            shown = self.app.site.get(f"/v1/jobs/{job}")
            return shown if shown["finished_at"] else None

        ended = wait_until(look, f"the end of {job}")
        return ended["state"], ended["reason"]

    def list_runners(self, install: str) -> list[tuple[str, str]]:
        """Return state and cause of all runners that ever enrolled for an install."""
        items = self.app.site.get("/v1/runners", queue_id=install)["items"]
        return [(runner["state"], runner["cause"]) for runner in items]

    def sync_app(self, write_app: "WriteApp") -> None:
        """Sync and build the app."""
        folder = self.folder / self.app_name
        write_app(self, folder)
        self.app.begin_app(self.app_name, folder)

    def write_shop(self, folder: Path) -> None:
        """Write an app whose jobs note who they are in AWS."""
        script = self.folder / "whoami.py"
        places = {
            "PYTHON": sys.executable,
            '"AWS"': f'"{self.aws.url}"',
            "TRACE": str(self.trace),
            "APPLY": self.apply or str(script),
            "STARTED": str(self.started),
        }
        for path, text in _FILES.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_fill(text, places))
        script.write_text(_fill(_WHO, places))
        script.chmod(0o755)

    def fetch(self, file: Mapping[str, Any]) -> dict[str, Any]:
        """Return a file of the Stack as the customer gets it, who has nothing but the link."""
        served = httpx.get(file["url"], trust_env=False).raise_for_status().content
        assert hashlib.sha256(served).hexdigest() == file["sha256"]
        return dict(json.loads(served))

    def create_install(self) -> Any:
        """Create the install; return what the vendor sees."""
        words = ("--approve-all", "--region", REGION, "--account", ACCOUNT)
        return self.run("installs", "create", self.app_name, "--name", "acme", *words)

    def apply_stack(self, given: Mapping[str, str] = GIVEN) -> AppliedTemplate:
        """Create the stack in the customer's account, of the template that is served."""
        files = self.run("installs", "stack", "acme")["files"]
        template = self.fetch(next(file for file in files if file["name"] == TEMPLATE))
        stack = AppliedTemplate(self.aws, "customer", template, given)
        stack.create()
        return stack

    def read_version(self, install: str) -> Any:
        """Return the newest version of the Stack."""
        return self.run("installs", "stack-versions", install)["items"][0]

    def list_callers(self) -> list[tuple[str, str]]:
        """Return the roles that AWS saw since the last question, and what secret each read."""
        return [(arn.split("/")[1], value) for arn, value in self.take_trace()]

    @contextmanager
    def start_machine(self, *, hurried: bool = True, **more: str) -> Iterator[LifeMachine]:
        """Start the machine of the Stack's group, with the file that its boot script writes.

        `more` are further settings of its runner.
        """
        machine, boot = find_machine(self.aws), read_boot_facts(self.aws)
        role = f"exclave-{boot['install']}-runner"
        with self.as_customer():
            self.keys = keys = Aws(self.aws.url).assume(role, machine)
        file = self.folder / "boot.json"
        file.write_text(json.dumps(boot))
        words = ["-c", HURRIED] if hurried else ["-m", "exclave"]
        words += ["runner", "--data", str(self.folder / "machine"), "--boot", str(file)]
        with start_imds(role, keys, machine) as imds:
            settings = {
                "METADATA_URL": imds.url, "CLOUD_URL": self.aws.url, "LOG_LEVEL": "info",
                "TOOLS_DOWNLOAD": "false", **more,
            }  # fmt: skip
            env = clean_env(settings)
            runner = KillableProcess([sys.executable, *words], env, self.folder / "machine.log")
            runner.start()
            try:
                yield LifeMachine(imds, runner, boot["install"], self.folder / "machine")
            finally:
                runner.stop()

    @contextmanager
    def as_customer(self) -> Iterator[None]:
        """Do something with rights that the emulation does not know."""
        self.aws.check_signatures(on=False)
        yield
        self.aws.check_signatures(on=True)


WriteApp = Callable[[Life, Path], None]


@contextmanager
def open_life(
    folder: Path,
    apply: str = "",
    timings: Mapping[str, str] = UNHURRIED,
    *,
    app_name: str = "shop",
    write_app: WriteApp = Life.write_shop,
) -> Iterator[Life]:
    """Start an AWS, and a control plane with an app that asks it who machines are."""
    archives = folder / "archives"
    archives.mkdir()
    site = make_site(folder, timings=timings)
    with start_aws() as aws:
        settings = {
            "ATTEST": "aws",
            "ATTEST_STS_URL": aws.url,
            "BUNDLES": str(write_archives(archives)),
        }
        site.servers[0].env |= {f"EXCLAVE_{name}": value for name, value in settings.items()}
        life = Life(AppSite(site), folder, aws, apply, app_name=app_name)
        try:
            life.sync_app(write_app)
            yield life
        finally:
            site.end()


def find_machine(aws: EmulatedAws) -> str:
    """Return the id of the only machine that the group of the Stack has started."""
    groups = aws.connect("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    (machine,) = groups[0]["Instances"]
    return str(machine["InstanceId"])


def read_boot_facts(aws: EmulatedAws) -> dict[str, Any]:
    """Return what the boot script in the launch template would write to the disk."""
    (template,) = aws.connect("ec2").describe_launch_templates()["LaunchTemplates"]
    version = aws.connect("ec2").describe_launch_template_versions(
        LaunchTemplateId=template["LaunchTemplateId"], Versions=["$Latest"]
    )["LaunchTemplateVersions"][0]
    script = base64.b64decode(version["LaunchTemplateData"]["UserData"]).decode()
    return find_boot_facts(script)


def _fill(text: str, places: Mapping[str, str]) -> str:
    for name, value in places.items():
        text = text.replace(name, value)
    return text
