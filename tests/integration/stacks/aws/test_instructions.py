"""The page for the customer, typed as it is: each of its commands, run by the real AWS CLI."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from exclave.stacks.aws.commands import TEMPLATE
from exclave.stacks.aws.stack import AwsStack
from exclave.stacks.base import StackAddress
from exclave.stacks.guide_text import write_instructions
from exclave.stacks.model import SecretModel, StackModel
from tests.support.aws_stacks import GIVEN, INSTALL, make_model
from tests.support.aws_variants import VARIANTS
from tests.support.customer_shell import CustomerShell
from tests.support.emulated_aws.server import ACCOUNT, REGION, EmulatedAws

FIRST = make_model()
SECOND = replace(VARIANTS["large"], secrets=(*FIRST.secrets, SecretModel("license", required=True)))
"""Needs another secret, and is too large to be sent along."""
EMERGENCY = f"{INSTALL}-break-glass-admin"


class Customer(CustomerShell):
    """Somebody with a shell, the AWS CLI and the link to the page."""

    def __init__(self, aws: EmulatedAws, folder: Path, site: Path, url: str) -> None:
        super().__init__(aws.url, folder)
        self.aws, self.site, self.url = aws, site, url

    def open_page(self, model: StackModel, before: StackModel | None = None) -> None:
        """Read the instructions for a version of the Stack, as it is served."""
        address = StackAddress(self.url, f"xcv_{len(list(self.site.iterdir()))}")
        served = self.site / address.code
        served.mkdir()
        for file in AwsStack().render(model).files:
            (served / file.name).parent.mkdir(exist_ok=True)
            (served / file.name).write_text(file.content)
        guide = AwsStack().write_guide(model, address, before)
        self.read(write_instructions(model, guide))


class Files(SimpleHTTPRequestHandler):
    """The files of Stacks, as a control plane serves them."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - of the base
        """Log nothing."""


@pytest.fixture
def customer(aws: EmulatedAws, tmp_path: Path) -> Iterator[Customer]:
    site, folder = tmp_path / "v1" / "stacks", tmp_path / "home"
    site.mkdir(parents=True)
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(tmp_path))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Customer(aws, folder, site, f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()
            thread.join()


def read_document(aws: EmulatedAws) -> Any:
    client = aws.connect("cloudformation")
    (stack,) = client.describe_stacks(StackName=FIRST.stack_name)["Stacks"]
    outputs = {item["OutputKey"]: item["OutputValue"] for item in stack["Outputs"]}
    return json.loads(read_secret(aws, outputs["StackDocumentArn"]))


def read_secret(aws: EmulatedAws, arn: str) -> str:
    client = aws.connect("secretsmanager")
    return str(client.get_secret_value(SecretId=arn)["SecretString"])


def find_emergency(aws: EmulatedAws) -> Any:
    """Return until when the break-glass role can be taken on; None if there is no role."""
    for role in aws.connect("iam").list_roles()["Roles"]:
        if role["RoleName"] == EMERGENCY:
            statement = role["AssumeRolePolicyDocument"]["Statement"][0]
            end = statement["Condition"]["DateLessThan"]["aws:CurrentTime"]
            return datetime.fromisoformat(end)
    return None


def list_terminated(aws: EmulatedAws) -> list[str]:
    """List the machines that are no more, which AWS shows for an hour."""
    found = aws.connect("ec2").describe_instances()["Reservations"]
    machines = [machine for each in found for machine in each["Instances"]]
    assert {machine["State"]["Name"] for machine in machines} == {"terminated"}
    place = f"arn:aws:ec2:{REGION}:{ACCOUNT}:instance"
    return [f"{place}/{machine['InstanceId']}" for machine in machines]


def list_left(aws: EmulatedAws) -> list[str]:
    """List what the account has beside what every account has, and beside secrets to be deleted."""
    ec2 = aws.connect("ec2")
    return [
        *(item["RoleName"] for item in aws.connect("iam").list_roles()["Roles"]),
        *(item["Arn"] for item in aws.connect("iam").list_policies(Scope="Local")["Policies"]),
        *(item["ARN"] for item in aws.connect("secretsmanager").list_secrets()["SecretList"]),
        *(item["Name"] for item in aws.connect("s3").list_buckets()["Buckets"]),
        *(item["logGroupName"] for item in aws.connect("logs").describe_log_groups()["logGroups"]),
        *(item["VpcId"] for item in ec2.describe_vpcs()["Vpcs"] if not item["IsDefault"]),
        *(item["AllocationId"] for item in ec2.describe_addresses()["Addresses"]),
    ]


def test_the_commands_of_the_page_alone_run_a_stack_from_its_creation_to_its_removal(
    customer: Customer,
) -> None:
    """One test, since every command costs a second."""
    aws = customer.aws
    customer.open_page(FIRST)
    customer.run("Fetch the files")
    assert (customer.folder / TEMPLATE).stat().st_size <= 51_200
    customer.fill_in(GIVEN)
    customer.run("Create the stack")
    assert read_document(aws)["enabled"] == "true"

    customer.open_page(SECOND, before=FIRST)
    customer.run("Fetch the files")
    planned = customer.run("Update the stack", LicenseSecret="l1cense")
    document = read_document(aws)
    assert {"Add", "SecretLicense"} <= set(planned)
    assert read_secret(aws, document["secrets"]["license"]) == "l1cense"
    assert read_secret(aws, document["secrets"]["db_password"]) == GIVEN["DbPasswordSecret"]

    # The page of before is still open: what it says goes on to work.
    customer.run("Stop everything")
    verdicts = set(customer.run("Verify that it is stopped"))
    assert (read_document(aws)["enabled"], verdicts) == ("false", {"explicitDeny"})
    customer.run("Start again")
    assert read_document(aws)["enabled"] == "true"
    assert "explicitDeny" not in customer.run("Verify that it is stopped")

    customer.open_page(SECOND, before=SECOND)
    assert customer.steps["Update the stack"] == []
    assert find_emergency(aws) is None
    customer.run("Switch on the break-glass role Emergency")
    left = find_emergency(aws) - datetime.now(UTC)
    assert timedelta(hours=3.9) < left <= timedelta(hours=4)
    assert read_document(aws)["roles"][EMERGENCY] == "true"
    customer.run("End break-glass")
    assert find_emergency(aws) is None
    assert read_secret(aws, read_document(aws)["secrets"]["license"]) == "l1cense"

    seal = read_document(aws)["seal"]
    customer.run("Remove the Stack")
    shown = set(customer.run("Verify that nothing is left"))
    assert shown == {seal, *list_terminated(aws)}
    assert list_left(aws) == []
