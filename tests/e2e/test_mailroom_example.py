"""The example for AWS, from its directory to an empty account, with Terraform's own provider."""

import os
import shutil
from pathlib import Path

import httpx

from exclave.stacks.guide_text import INSTRUCTIONS
from tests.e2e.aws_life_site import Life, open_life
from tests.support.customer_shell import CustomerShell
from tests.support.emulated_aws.server import EmulatedAws
from tests.support.providers import need_aws_provider
from tests.support.python_tools import need_python_tool

EXAMPLE = Path(__file__).parents[2] / "examples" / "mailroom"
GIVEN = {"CarrierKeySecret": "c4rrier", "InstallPostmaster": "post@customer.example"}
LONG_S = 600
"""The provider takes seconds to start, and each job starts it several times."""


def write_mailroom(life: Life, folder: Path) -> None:
    """Copy the example; its tools are sent to the emulation, and nothing else differs."""
    shutil.copytree(EXAMPLE, folder)
    address = f'\n[env_vars]\nAWS_ENDPOINT_URL = "{life.aws.url}"\n'
    for part in (folder / "sandbox.toml", *folder.glob("components/*.toml")):
        part.write_text(part.read_text() + address)
    # Version 1 of the AWS CLI finds the endpoint of queues by itself only.
    script = folder / "actions" / "count.sh"
    script.write_text(
        script.read_text().replace("aws sqs", f"aws --endpoint-url {life.aws.url} sqs")
    )


def list_resources(aws: EmulatedAws) -> dict[str, list[str]]:
    """Return the names of what the app made in the account."""
    parameters = aws.connect("ssm").describe_parameters()["Parameters"]
    return {
        "queues": sorted(
            url.rpartition("-")[2] for url in aws.connect("sqs").list_queues().get("QueueUrls", [])
        ),
        "tables": [
            name.rpartition("-")[2] for name in aws.connect("dynamodb").list_tables()["TableNames"]
        ],
        "topics": [
            topic["TopicArn"].rpartition("-")[2]
            for topic in aws.connect("sns").list_topics()["Topics"]
        ],
        "parameters": [item["Name"].rpartition("/")[2] for item in parameters],
    }


def open_page(life: Life, folder: Path) -> CustomerShell:
    """Return the customer, who has the link of the vendor and reads the page behind it."""
    folder.mkdir()
    address = f"{life.run('installs', 'stack', 'acme')['page']}latest/{INSTRUCTIONS}"
    customer = CustomerShell(life.aws.url, folder)
    customer.read(httpx.get(address, trust_env=False).raise_for_status().text)
    return customer


def test_mailroom_lives_by_the_printed_instructions_with_no_more_rights_than_its_roles_name(
    tmp_path: Path,
) -> None:
    with open_life(tmp_path, app_name="mailroom", write_app=write_mailroom) as life:
        made = life.create_install()
        customer = open_page(life, tmp_path / "home")
        customer.run("Fetch the files")
        customer.fill_in(GIVEN)
        customer.run("Create the stack")
        path = os.pathsep.join((str(need_python_tool("awscli").parent), os.environ["PATH"]))
        with life.start_machine(TF_MIRROR=str(need_aws_provider()), PATH=path):
            life.wait_for_state(made["id"], "active")
            provisioned = life.app.await_end(made["workflow_id"], LONG_S)
            with life.as_customer():
                deployed = list_resources(life.aws)
            removal = life.run("installs", "deprovision", "acme", "--yes")["id"]
            deprovisioned = life.app.await_end(removal, LONG_S)
        with life.as_customer():
            left = list_resources(life.aws)
            customer.run("Remove the Stack")
            roles = life.aws.connect("iam").list_roles()["Roles"]

    assert provisioned["state"] == "succeeded", provisioned
    assert deployed == {
        "queues": ["letters", "lost"],
        "tables": ["delivered"],
        "topics": ["alarms"],
        "parameters": ["postmaster"],
    }
    assert deprovisioned["state"] == "succeeded", deprovisioned
    assert left == {"queues": [], "tables": [], "topics": [], "parameters": []}
    assert roles == []
