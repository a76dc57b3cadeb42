"""The whole life of an install on an emulated AWS, through what vendors and customers use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.aws_life_site import GIVEN, Life, open_life, read_boot_facts
from tests.faults.site import UNHURRIED

TIMINGS = {**UNHURRIED, "DEADMAN_MUTATING_S": "20", "LOST_MUTATING_S": "30"}


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    with open_life(tmp_path, timings=TIMINGS) as opened:
        yield opened


def test_an_install_lives_from_its_creation_until_the_customer_deletes_the_stack(
    life: Life,
) -> None:
    made = life.create_install()
    install = made["id"]
    before = life.read_version("acme")["state"]

    stack = life.apply_stack()
    boot = read_boot_facts(life.aws)
    with life.start_machine() as machine:
        version = life.wait_for_state(install, "active")
        provisioned = life.app.await_end(made["workflow_id"])
        by_provision = life.list_callers()
        ran = life.app.await_end(life.run("actions", "run", "acme", "whoami")["id"])
        by_action = life.list_callers()

        killed = life.begin_slow("before_crash")
        machine.crash()
        ended = [life.wait_for_end_of(killed)]
        cut_off = life.begin_slow("before_wipe")
        machine.reboot_wiped(life.list_started())
        after_reboot = life.app.await_end(life.run("actions", "run", "acme", "whoami")["id"])
        ended.append(life.wait_for_end_of(cut_off))
        runners = life.list_runners(install)

        with life.as_customer():
            logs = {kind: machine.read_log(life.aws, kind) for kind in ("runner", "audit")}
            stack.update(RunnerEnabled="false")
        life.wait_for_state(install, "disabled")
        machine.end()
        shown = life.run("installs", "get", "acme")

    with life.as_customer():
        stack.delete()
        secrets = life.aws.connect("secretsmanager").list_secrets()["SecretList"]
        roles = life.aws.connect("iam").list_roles()["Roles"]

    assert "code" not in boot
    assert (before, version["version"]) == ("awaiting", 1)
    assert provisioned["state"] == "succeeded", provisioned
    assert ran["state"] == "succeeded", ran
    assert by_provision == [(f"{install}-provision", "-")]
    assert by_action == [(f"{install}-maintenance", GIVEN["DbPasswordSecret"])]
    assert ended == [("lost", "runner_restarted"), ("lost", "runner_silent")]
    assert len(life.list_started()) == 2
    assert after_reboot["state"] == "succeeded", after_reboot
    assert [state for state, _ in runners] == ["revoked", "active"]
    assert runners[0][1] == f"replaced by {machine.imds.machine}"
    assert {"enrolled", "job_started"} <= set(logs["audit"])
    assert "enrolled_by_attestation" in logs["runner"]
    assert shown["stack"]["state"] == "disabled"
    assert shown["stack"]["leaving"].startswith("terminating since 2")
    assert [secret["ARN"] for secret in secrets] == [stack.outputs["SealSecretArn"]]
    assert roles == []
