"""The whole life of an install in a subscription of Azure that is emulated on the loopback."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.azure_life_site import AzureLife, open_azure_life
from tests.faults.site import wait_until
from tests.support.emulated_azure.deployment import SUBSCRIPTION, TENANT

GIVEN: dict[str, Any] = {
    "dbPasswordSecret": "v4lue-of-the-database", "installDomain": 'shop."acme".example',
}  # fmt: skip
CREATE = ("installs", "create", "shop", "--name", "acme", "--approve-all")
PLACE = ("--region", "westeurope", "--account", SUBSCRIPTION, "--tenant", TENANT)


@pytest.fixture
def life(tmp_path: Path) -> Iterator[AzureLife]:
    with open_azure_life(tmp_path) as opened:
        yield opened


def list_kinds(life: AzureLife) -> set[str]:
    """Return what kinds of lines the customer's log store has."""
    return {line["Kind"] for line in life.azure.lines}


def test_an_install_lives_from_its_creation_until_the_customer_stops_it(life: AzureLife) -> None:
    made = life.run(*CREATE, *PLACE)
    install = made["id"]
    template = life.fetch_template(life.run("installs", "stack", "acme"))

    deployment = life.apply(template, **GIVEN)
    vault = f"{deployment.find('SecretVault')['name']}.vault.azure.net"
    own = f"{deployment.find('RunnerVault')['name']}.vault.azure.net"
    with life.start_machine(deployment):
        version = life.wait_for_state(install, "active")
        provisioned = life.app.await_end(made["workflow_id"])
        by_provision = life.list_callers()
        ran = life.app.await_end(life.run("actions", "run", "acme", "whoami")["id"])
        by_action = life.list_callers()
        wait_until(lambda: list_kinds(life) == {"runner", "audit"}, "the log was copied")
        life.apply(template, **GIVEN, runnerEnabled=False)
        life.wait_for_state(install, "disabled")
        shown = life.run("installs", "get", "acme")

    generated = life.azure.read(vault, "session-key")
    assert provisioned["state"] == "succeeded", provisioned
    assert ran["state"] == "succeeded", ran
    assert version["version"] == 1
    assert by_provision == [[f"exclave-{install}-provision", "-", "-"]]
    identity = f"exclave-{install}-maintenance"
    assert by_action == [[identity, GIVEN["dbPasswordSecret"], generated]]
    assert shown["stack"]["state"] == "disabled"
    assert (life.azure.rights, life.azure.capacity) == (set(), 0)
    assert GIVEN["dbPasswordSecret"] not in str(life.azure.lines)
    assert len(life.azure.read(own, "exclave-seal")) == 64
