"""The Terraform form, applied by Terraform with the real provider on an emulated AWS."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from exclave.stacks.aws.terraform.module import write_files
from exclave.stacks.model import StackModel
from tests.support.aws_inventory import Inventory, list_differences
from tests.support.aws_stacks import GIVEN, INSTALL, EmulatedStack, make_model
from tests.support.emulated_aws.server import REGION, EmulatedAws
from tests.support.providers import need_aws_provider
from tests.support.tools import need_terraform

VALUES = {"db_password_secret": GIVEN["DbPasswordSecret"], "install_domain": GIVEN["InstallDomain"]}
NOTHING_TO_DO = 0
CHANGES = 2


class Module:
    """A configuration of the customer that calls the module."""

    def __init__(self, folder: Path, aws: EmulatedAws, model: StackModel) -> None:
        self.folder, self.aws = folder, aws
        stack = folder / "stack"
        stack.mkdir()
        for name, text in write_files(model).items():
            (stack / name).write_text(text)
        mirror = json.dumps(str(need_aws_provider()))
        (folder / "rc").write_text(
            f"disable_checkpoint = true\nprovider_installation {{\n"
            f"  filesystem_mirror {{\n    path = {mirror}\n  }}\n}}\n"
        )

    def configure(self, **values: Any) -> None:
        """Write the values that the customer chooses."""
        body = {
            "provider": {"aws": {"region": REGION}},
            "module": {"stack": {"source": "./stack", **VALUES, **values}},
            "output": {"outputs": {"value": "${module.stack.outputs}"}},
        }
        (self.folder / "main.tf.json").write_text(json.dumps(body))

    def run(self, *words: str, expected: int = NOTHING_TO_DO) -> str:
        """Run Terraform; return what it prints."""
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TF_CLI_CONFIG_FILE": str(self.folder / "rc"),
            "AWS_ENDPOINT_URL": self.aws.url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        argv = [str(need_terraform()), *words, "-no-color"]
        done = subprocess.run(
            argv, cwd=self.folder, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == expected, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout


@pytest.fixture
def module(aws: EmulatedAws, tmp_path: Path) -> Module:
    made = Module(tmp_path, aws, make_model())
    made.configure()
    made.run("init", "-input=false")
    return made


def test_both_forms_make_the_same_and_a_second_plan_and_a_stop_behave(module: Module) -> None:
    """One test, since every command of the provider costs seconds."""
    aws = module.aws
    EmulatedStack(aws, make_model()).create()
    expected = Inventory(aws).read()
    aws.reset()

    module.run("apply", "-auto-approve", "-input=false")

    found = Inventory(aws).read()
    assert list_differences(expected, found) == []
    state = (module.folder / "terraform.tfstate").read_text()
    assert GIVEN["DbPasswordSecret"] not in state
    seal = _read_seal(aws)
    assert len(seal) == 64
    assert seal not in state
    module.run("plan", "-detailed-exitcode", "-input=false", expected=NOTHING_TO_DO)

    module.configure(runner_enabled=False)
    module.run("apply", "-auto-approve", "-input=false")

    stopped = Inventory(aws).read()
    rules = [item["Sid"] for item in stopped[f"policy exclave-{INSTALL}-guard"]["Statement"]]
    assert "Stopped" in rules
    assert (stopped["group"], stopped["machines"]) == ((0, 0, 0), 0)


def _read_seal(aws: EmulatedAws) -> str:
    client = aws.connect("secretsmanager")
    (arn,) = [
        secret["ARN"]
        for secret in client.list_secrets()["SecretList"]
        if secret.get("Description", "").startswith("Seals")
    ]
    return str(client.get_secret_value(SecretId=arn)["SecretString"])
