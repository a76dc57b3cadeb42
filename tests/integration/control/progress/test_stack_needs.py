"""Steps that need a role or a secret that the customer's Stack does not have yet."""

from pathlib import Path
from typing import Any

import pytest

from exclave.control.installs import actions, upgrades
from exclave.control.workflows import workflows
from exclave.domain.identity import QueueId
from exclave.domain.workflows import WorkflowId
from exclave.wire.actions import RunAction
from exclave.wire.installs import Upgrade
from exclave.wire.jobs import JobKind
from exclave.wire.workflows import StepReply
from tests.integration.control.conftest import World
from tests.integration.control.stacks.cloud_kit import SECRETS, CloudShop, open_cloud_shop
from tests.support.install_fixture import succeed
from tests.support.installs import ACTION, add_config
from tests.support.world import enrol_fake_runner

NAME = "deployer"
ROLE = {"type": "custom", "name": NAME, "policies": [{"managed_policy_name": "ReadOnlyAccess"}]}
USUAL = {"type": "maintenance", "name": "usual"}
NEW_SECRET = {"name": "mail_password", "required": True}


@pytest.fixture
async def shop(world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CloudShop:
    roles = {"permission": [USUAL]}
    shop = await open_cloud_shop(world, monkeypatch, tmp_path, more_parts=roles)
    await report(shop, 1)
    return shop


async def report(shop: CloudShop, number: int) -> None:
    versions = await shop.list_versions()
    digest = next(version.digest for version in versions if version.version == number)
    await shop.report(await shop.enrol(), digest)


async def upgrade(shop: CloudShop, **more: Any) -> None:
    parts = {"permission": [USUAL, ROLE]}
    wish = {"cloud": "aws", "secrets": SECRETS, "more_parts": parts, **more}
    await add_config(shop.deps, shop.user, shop.app, **wish)
    await upgrades.upgrade_install(shop.deps, shop.user, shop.install, Upgrade())


async def run_action(shop: CloudShop) -> WorkflowId:
    """Start an action; a runner answers the job that waits for one."""
    peer = await enrol_fake_runner(shop.deps, shop.user, QueueId(shop.install))
    begun = await actions.run_action(shop.deps, shop.user, shop.install, RunAction(action="check"))
    (offer,) = (await peer.poll(free=8, kinds=tuple(JobKind))).offers
    await peer.start(offer.execution_id, offer.epoch)
    await peer.hand_in(offer.execution_id, offer.epoch, succeed())
    return WorkflowId(begun.id)


async def find_step(shop: CloudShop, workflow: WorkflowId) -> StepReply:
    """Return the step of the action."""
    shown = await workflows.show_workflow(shop.deps, shop.user, workflow)
    return shown.steps[-1]


async def test_a_role_that_only_the_newest_version_has_is_waited_for(shop: CloudShop) -> None:
    await upgrade(shop, action={**ACTION, "role": NAME})
    workflow = await run_action(shop)

    held = await find_step(shop, workflow)
    await report(shop, 2)
    passed = await find_step(shop, workflow)

    assert held.state == "pending"
    assert held.blocked_by is not None
    assert held.blocked_by.message == (
        "the Stack that the customer runs (version 1) lacks the role `deployer`,"
        " which version 2 has"
    )
    assert "exclave installs stack acme" in held.blocked_by.hint
    assert (passed.state, passed.message) == ("active", "")


async def test_a_secret_that_only_the_newest_version_has_is_waited_for(shop: CloudShop) -> None:
    env = {"PASSWORD": "{{ .nuon.install_stack.outputs.mail_password_arn }}"}
    steps = [{**ACTION["steps"][0], "env_vars": env}]
    await upgrade(shop, action={**ACTION, "steps": steps}, secrets=(*SECRETS, NEW_SECRET))
    await report(shop, 1)
    workflow = await run_action(shop)

    held = await find_step(shop, workflow)
    await report(shop, 2)
    passed = await find_step(shop, workflow)

    assert held.blocked_by is not None
    assert "lacks the secret `mail_password`" in held.blocked_by.message
    assert (held.state, passed.state) == ("pending", "active")


async def test_work_that_needs_nothing_new_goes_on(shop: CloudShop) -> None:
    await upgrade(shop)
    workflow = await run_action(shop)

    assert (await find_step(shop, workflow)).state == "active"


async def test_a_role_that_no_version_has_is_left_to_the_runner(shop: CloudShop) -> None:
    await upgrade(shop, action={**ACTION, "role": "nobody"})
    workflow = await run_action(shop)

    assert (await find_step(shop, workflow)).state == "active"
