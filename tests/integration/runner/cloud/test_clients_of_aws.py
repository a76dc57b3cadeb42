"""Real clients of AWS ask the endpoint of a job: the SDK, and Terraform with its own provider.

Behind it is STS of an emulator that checks every signature and every right.
"""

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from tempfile import mkdtemp

import pytest

from exclave.base.clock import SystemClock
from exclave.base.ids import SeededRandomness
from exclave.runner.audit import Audit
from exclave.runner.cloud import credentials
from exclave.runner.cloud.accounts import Caller, CloudAccount, Credential, RoleSession
from exclave.runner.cloud.aws import AwsAccount, AwsAddresses
from exclave.runner.cloud.identities import CloudIdentities
from exclave.runner.cloud.imds import AwsMetadata
from exclave.runner.jobs.workspace import prepare_workspace
from exclave.runner.processes.cell import NO_CELL
from exclave.wire.jobs import JsonValue
from exclave.wire.stacks import Cloud
from tests.support.aws_emulator import ACCOUNT, REGION, Aws, start_aws, start_imds
from tests.support.providers import need_aws_provider
from tests.support.tools import need_terraform
from tests.unit.runner.cloud.cloud_kit import WISH, HidingWriter, make_dispatch, read_document

RUNNER, ROLE = "exclave-x-runner", "acme-maintenance"
RIGHTS = {
    RUNNER: ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"],
    ROLE: ["s3:*", "sts:GetCallerIdentity"],
}
MODULE = """
terraform {
  required_providers { aws = { source = "hashicorp/aws" } }
}
provider "aws" {
  s3_use_path_style = true
}
data "aws_caller_identity" "me" {}
resource "aws_s3_bucket" "first" { bucket = "exclave-first" }
resource "terraform_data" "pause" {
  triggers_replace = [aws_s3_bucket.first.id]
  provisioner "local-exec" { command = "sleep PAUSE" }
}
resource "aws_s3_bucket" "second" {
  bucket     = "exclave-second"
  depends_on = [terraform_data.pause]
}
output "who" { value = data.aws_caller_identity.me.arn }
"""


class ShortLived(AwsAccount):
    """An account whose roles end sooner, so that a client has to ask again soon."""

    lasts_s = 900.0
    sessions = 0

    async def assume_role(self, session: RoleSession, resource: str = "") -> Credential:
        made = await super().assume_role(session, resource)
        self.sessions += 1
        ends = self.caller.clock.now() + timedelta(seconds=self.lasts_s)
        return Credential(min(made.expires_at, ends), keys=made.keys)


@dataclass
class Job:
    """A job with a role in the emulated account."""

    aws: Aws
    account: ShortLived
    env: Mapping[str, str]
    folder: Path

    async def run(self, *argv: str, **more: str) -> tuple[int, str]:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **self.env, **more}
        child = await asyncio.create_subprocess_exec(
            *argv,
            cwd=self.folder,
            env={**env, "AWS_ENDPOINT_URL": self.aws.url},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await child.communicate()
        return child.returncode or 0, output.decode()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path, for sockets of providers."""
    made = Path(mkdtemp(prefix="exclave-aws-"))
    yield made
    shutil.rmtree(made)


def give_rights(aws: Aws) -> None:
    for role, actions in RIGHTS.items():
        aws.make_role(role)
        statement = {"Effect": "Allow", "Action": actions, "Resource": "*"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam = aws._open("iam")
        iam.put_role_policy(RoleName=role, PolicyName="p", PolicyDocument=document)


@asynccontextmanager
async def open_job(folder: Path) -> AsyncIterator[Job]:
    clock, randomness = SystemClock(), SeededRandomness(3)
    with start_aws() as aws:
        give_rights(aws)
        with start_imds(RUNNER, aws.assume(RUNNER, "i-0123456789abcdef0")) as imds:
            aws.check_signatures()
            account = ShortLived(
                REGION,
                Caller(clock, randomness),
                AwsMetadata(imds.url),
                AwsAddresses(sts=aws.url, secrets=aws.url),
            )
            arn = f"arn:aws:iam::{ACCOUNT}:role/{ROLE}"
            outputs: JsonValue = {"region": REGION, "maintenance_iam_role_arn": arn}
            document = read_document(outputs=outputs, roles={ROLE: "true"})
            audit = Audit(folder / "audit.jsonl", clock)
            stored: CloudAccount = account
            identities = CloudIdentities(
                Cloud.AWS, stored, lambda: document, clock, randomness, audit, str
            )
            dispatch, log = make_dispatch(dict(WISH)), HidingWriter()
            async with identities.open(dispatch, NO_CELL, log, lambda: False) as identity:
                assert identity is not None
                (folder / "run").mkdir()
                env = identity.prepare(prepare_workspace(folder / "run", keep_free_bytes=0))
                yield Job(aws, account, env, folder)


async def test_the_sdk_of_aws_acts_as_the_role_of_the_job(folder: Path) -> None:
    ask = (
        "import boto3; print(boto3.client('sts').get_caller_identity()['Arn']);"
        "boto3.client('s3').create_bucket(Bucket='exclave-sdk', CreateBucketConfiguration="
        "{'LocationConstraint': 'eu-west-1'});"
        "boto3.client('iam').list_users()"
    )
    async with open_job(folder) as job:
        code, output = await job.run(sys.executable, "-c", ask)

    execution = f"exclave-exe_{'0' * 26}"
    assert f"arn:aws:sts::{ACCOUNT}:assumed-role/{ROLE}/{execution}" in output
    assert code != 0
    assert "AccessDenied" in output
    assert "list_users" in output or "ListUsers" in output


async def test_terraform_gets_fresh_credentials_in_the_middle_of_an_apply(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terraform = str(need_terraform())
    # The provider asks again 300 s before the end that it was told: 12 s from now.
    monkeypatch.setattr(credentials, "FRESH_S", 305.0)
    module = MODULE.replace("PAUSE", "20")
    (folder / "main.tf").write_text(module)
    mirror = f'provider_installation {{ filesystem_mirror {{ path = "{need_aws_provider()}" }} }}'
    (folder / "rc").write_text(f"disable_checkpoint = true\n{mirror}\n")
    more = {"TF_CLI_CONFIG_FILE": str(folder / "rc"), "TF_IN_AUTOMATION": "1"}
    async with open_job(folder) as job:
        job.account.lasts_s = 312.0
        made = await job.run(terraform, "init", "-input=false", "-no-color", **more)
        applied = await job.run(
            terraform, "apply", "-auto-approve", "-input=false", "-no-color", **more
        )

    assert made[0] == 0, made[1]
    assert applied[0] == 0, applied[1]
    assert re.search(rf'who = "arn:aws:sts::{ACCOUNT}:assumed-role/{ROLE}/exclave-exe_', applied[1])
    assert job.account.sessions >= 2
