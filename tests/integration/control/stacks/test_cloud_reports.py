"""Reports from machines in clouds: which version runs, where, the kill switch, the end."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from exclave.base.errors import NotFound
from exclave.control.installs import installs, state_views, upgrades
from exclave.control.runtime.rates import RateLimited
from exclave.control.stacks import cloud_reports, cloud_stacks, stacks
from exclave.control.workflows import workflows
from exclave.domain.workflows import WorkflowId
from exclave.wire.installs import StackSummary, Upgrade
from exclave.wire.stacks import Leaving, StackProgress, StackReport
from tests.integration.control.conftest import World
from tests.integration.control.stacks.cloud_kit import (
    ACCOUNT,
    SECRETS,
    CloudShop,
    open_cloud_shop,
)
from tests.integration.control.stacks.test_cloud_stacks import ROLE
from tests.support.installs import add_config

OTHER = "210987654321"


@pytest.fixture
async def shop(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CloudShop:
    return await open_cloud_shop(world, monkeypatch, tmp_path)


async def summarise(shop: CloudShop) -> StackSummary:
    shown = (await installs.show_install(shop.deps, shop.user, shop.install)).stack
    assert shown is not None
    return shown


async def add_role(shop: CloudShop) -> None:
    """Move the install to a config that asks for a role."""
    more = {"secrets": SECRETS, "more_parts": {"permission": [ROLE]}}
    await add_config(shop.deps, shop.user, shop.app, cloud="aws", **more)
    await upgrades.upgrade_install(shop.deps, shop.user, shop.install, Upgrade())


async def find_digest(shop: CloudShop, number: int) -> str:
    return next(v.digest for v in await shop.list_versions() if v.version == number)


async def test_a_report_says_which_version_runs_and_gives_its_outputs(shop: CloudShop) -> None:
    who = await shop.enrol()

    await shop.report(
        who,
        await find_digest(shop, 1),
        roles={"deploy": True, "emergency": False},
        outputs={"account_id": ACCOUNT, "region": "eu-west-1", "vpc_id": "vpc-1"},
        machine={"id": "i-1", "type": "t3.medium", "zone": "eu-west-1a"},
        program={"version": "0.1.0", "updates": "pinned", "problem": "the next one failed"},
    )

    state = (await state_views.show_state(shop.deps, shop.user, shop.install)).document
    stack: Any = state["install_stack"]
    assert (stack["status"], stack["outputs"]["vpc_id"]) == ("active", "vpc-1")
    assert stack["outputs"]["secrets"] == {"db_password": True}
    summary = await summarise(shop)
    assert (summary.state, summary.running, summary.newest) == ("active", 1, 1)
    assert (summary.roles_off, summary.machine) == (["emergency"], "i-1 t3.medium eu-west-1a")
    assert summary.program == "0.1.0, pinned by the customer, the next one failed"


async def test_an_account_that_was_not_given_is_read_by_templates_once_reported(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shop = await open_cloud_shop(world, monkeypatch, tmp_path, account="")
    who = await shop.enrol()

    await shop.report(who, await find_digest(shop, 1))

    state = (await state_views.show_state(shop.deps, shop.user, shop.install)).document
    aws = {"region": "eu-west-1", "account_id": ACCOUNT}
    assert state["cloud_account"] == {"aws": aws, "azure": None, "gcp": None}
    assert await shop.show_states() == [(1, "active")]


async def test_a_newer_version_waits_until_the_runner_reports_it(shop: CloudShop) -> None:
    who = await shop.enrol()
    await shop.report(who, await find_digest(shop, 1))

    await add_role(shop)
    waiting, summary = await shop.show_states(), await summarise(shop)
    await shop.report(who, await find_digest(shop, 2))

    assert waiting == [(2, "awaiting"), (1, "outdated")]
    assert (summary.state, summary.running, summary.newest) == ("outdated", 1, 2)
    assert await shop.show_states() == [(2, "active"), (1, "superseded")]


async def test_what_a_newer_version_changes_is_said_in_words(shop: CloudShop) -> None:
    with pytest.raises(NotFound, match="the customer runs no version yet"):
        await cloud_stacks.compare_stack(shop.deps, shop.user, shop.install, None, None)
    await shop.report(await shop.enrol(), await find_digest(shop, 1))
    await add_role(shop)

    diff = await cloud_stacks.compare_stack(shop.deps, shop.user, shop.install, None, None)
    back = await cloud_stacks.compare_stack(shop.deps, shop.user, shop.install, 2, 1)

    assert (diff.before, diff.after) == (1, 2)
    assert [(change.kind, change.part) for change in diff.changes] == [("added", "role")]
    assert [(change.kind, change.part) for change in back.changes] == [("removed", "role")]


async def test_a_customer_may_go_back_to_the_version_before(shop: CloudShop) -> None:
    who = await shop.enrol()
    first = await find_digest(shop, 1)
    await add_role(shop)
    await shop.report(who, await find_digest(shop, 2))

    await shop.report(who, first)

    assert await shop.show_states() == [(2, "awaiting"), (1, "outdated")]


@pytest.mark.parametrize(
    ("outputs", "told"),
    [
        ({"account_id": OTHER, "region": "eu-west-1"}, "in the account `210987654321`"),
        ({"account_id": ACCOUNT, "region": "us-east-1"}, "in the region `us-east-1`"),
    ],
)
async def test_a_stack_that_is_elsewhere_is_refused_and_stores_nothing(
    shop: CloudShop, outputs: dict[str, str], told: str
) -> None:
    who = await shop.enrol()

    with pytest.raises(cloud_reports.StackMismatch, match=told):
        await shop.report(who, await find_digest(shop, 1), outputs=outputs)

    assert await shop.show_states() == [(1, "awaiting")]


async def test_a_document_without_a_region_is_of_the_region_of_its_install(
    shop: CloudShop,
) -> None:
    outputs = {"account_id": ACCOUNT}

    await shop.report(
        await shop.enrol(), await find_digest(shop, 1), facts={"region": "unknown"}, outputs=outputs
    )

    shown = await stacks.show_stack(shop.deps, shop.user, shop.install)
    assert (shown.state, shown.outputs["region"]) == ("active", "eu-west-1")


async def test_a_stack_that_is_none_of_ours_is_refused(shop: CloudShop) -> None:
    who = await shop.enrol()

    with pytest.raises(cloud_reports.StackMismatch, match="no version of this install"):
        await shop.report(who, "0" * 64)


async def test_the_kill_switch_is_seen_and_nothing_begins(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shop = await open_cloud_shop(world, monkeypatch, tmp_path, provision=True)
    who = await shop.enrol()
    digest = await find_digest(shop, 1)

    await shop.report(who, digest, enabled=False)
    shown = await installs.show_install(shop.deps, shop.user, shop.install)
    flow = WorkflowId(shown.workflows[0].id)
    held = await workflows.show_workflow(shop.deps, shop.user, flow)
    await shop.report(who, digest)
    passed = await workflows.show_workflow(shop.deps, shop.user, flow)

    assert (await summarise(shop)).state == "active"
    assert shown.stack is not None
    assert shown.stack.state == "disabled"
    assert {step.name: step.state for step in held.steps}["stack"] == "active"
    assert {step.name: step.state for step in passed.steps}["stack"] == "succeeded"


async def test_what_an_unproved_machine_says_is_shown_until_a_report_comes(
    shop: CloudShop,
) -> None:
    progress = StackProgress(stage="waiting", note="for its secret")

    await cloud_reports.note_progress(shop.deps, shop.install, progress)
    before, states = await summarise(shop), await shop.show_states()
    await shop.report(await shop.enrol(), await find_digest(shop, 1))
    await cloud_reports.note_progress(shop.deps, shop.install, progress)

    assert states == [(1, "booting")]
    assert before.beacon == (
        "unverified: a machine that claims to be it says `waiting: for its secret`"
    )
    assert (await summarise(shop)).beacon == ""
    assert await shop.show_states() == [(1, "active")]


async def test_messages_about_an_install_are_limited_and_unknown_ones_say_nothing(
    shop: CloudShop,
) -> None:
    booted = StackProgress(stage="booted")
    await cloud_reports.note_progress(shop.deps, "inst0000000000000000000000000000", booted)

    for _ in range(20):
        await cloud_reports.note_progress(shop.deps, shop.install, booted)
    with pytest.raises(RateLimited):
        await cloud_reports.note_progress(shop.deps, shop.install, booted)


async def test_a_stack_whose_machine_left_is_gone_unless_another_one_comes(
    shop: CloudShop,
) -> None:
    who, digest = await shop.enrol(), await find_digest(shop, 1)
    await shop.report(who, digest)

    await cloud_reports.note_leaving(shop.deps, who, Leaving(reason="terminating"))
    soon, leaving = await shop.show_states(), (await summarise(shop)).leaving
    shop.clock.advance(901)
    later = await shop.show_states()
    await shop.report(who, digest)

    assert (soon, later) == ([(1, "active")], [(1, "removed")])
    assert leaving.startswith("terminating since 2")
    assert await shop.show_states() == [(1, "active")]
    assert (await summarise(shop)).leaving == ""


async def test_a_stopped_stack_stays_stopped_when_its_machine_goes(shop: CloudShop) -> None:
    who, digest = await shop.enrol(), await find_digest(shop, 1)
    await shop.report(who, digest, enabled=False)

    await cloud_reports.note_leaving(shop.deps, who, Leaving(reason="terminating"))
    shop.clock.advance(901)

    assert await shop.show_states() == [(1, "disabled")]


async def test_a_runner_without_a_stack_in_a_cloud_cannot_leave(world: World) -> None:
    with pytest.raises(NotFound):
        await cloud_reports.note_leaving(world.deps, world.peer.who, Leaving(reason="stopping"))


async def test_the_same_report_again_changes_nothing(shop: CloudShop) -> None:
    who, digest = await shop.enrol(), await find_digest(shop, 1)
    await shop.report(who, digest)
    before = await stacks.show_stack(shop.deps, shop.user, shop.install)
    shop.clock.advance(60)

    await shop.report(who, digest)

    assert await stacks.show_stack(shop.deps, shop.user, shop.install) == before


def test_outputs_have_a_limit() -> None:
    with pytest.raises(ValidationError, match="at most 65536 bytes"):
        StackReport(facts={}, outputs={"a": "x" * 70_000})
