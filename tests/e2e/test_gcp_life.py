"""The whole life of an install in a project of Google Cloud that is emulated on the loopback."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.gcp_life_site import GcpLife, open_gcp_life
from tests.faults.site import wait_until
from tests.support.gcp_stacks import GIVEN, PROJECT, REGION

CREATE = ("installs", "create", "shop", "--name", "acme", "--approve-all")


@pytest.fixture
def life(tmp_path: Path) -> Iterator[GcpLife]:
    with open_gcp_life(tmp_path) as opened:
        yield opened


def test_an_install_lives_from_its_creation_until_the_customer_stops_it(life: GcpLife) -> None:
    made = life.run(*CREATE, "--region", REGION, "--account", PROJECT)
    install = made["id"]
    created = life.run("installs", "stack", "acme")

    module = life.fetch_module(created, **GIVEN)
    life.apply(module, **GIVEN)
    accounts = {
        name.removeprefix("role_"): one["email"]
        for name, one in life.gcp.find("google_service_account").items()
    }
    with life.start_machine():
        version = life.wait_for_state(install, "active")
        provisioned = life.app.await_end(made["workflow_id"])
        by_provision = life.list_callers()
        ran = life.app.await_end(life.run("actions", "run", "acme", "whoami")["id"])
        by_action = life.list_callers()
        state = life.run("installs", "state", "acme")["document"]
        outputs = state["install_stack"]["outputs"]
        wait_until(lambda: life.gcp.logs, "the log was copied")
        life.apply(module, **GIVEN, runner_enabled=False)
        life.wait_for_state(install, "disabled")

    assert version["version"] == 1
    assert provisioned["state"] == "succeeded", provisioned
    assert ran["state"] == "succeeded", ran
    assert by_provision == [(accounts["provision"], "-")]
    assert by_action == [(accounts["maintenance"], GIVEN["db_password_secret"])]
    assert outputs["project_id"] == PROJECT
    assert outputs["maintenance_sa_email"] == accounts["maintenance"]
    made_up = [name for name in life.gcp.values if name.endswith(("session-key", "seal"))]
    assert {len(life.gcp.values[name]) for name in made_up} == {1}, "the runner made each once"
    assert len(made_up) == 2
    ((log, entries),) = life.gcp.logs.items()
    assert log == f"projects/{PROJECT}/logs/exclave-{install}"
    assert "enrolled_by_attestation" in {entry["jsonPayload"].get("event") for entry in entries}
    assert GIVEN["db_password_secret"] not in json.dumps(entries)
