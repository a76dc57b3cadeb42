"""Installs move to another config: what differs is told, and brought when asked."""

from typing import Any

import pytest

from exclave.base.errors import Conflict, NotFound
from exclave.control.installs import installs, state_views, upgrades
from exclave.control.installs.input_validation import BadInputs
from exclave.domain.identity import InstallId
from exclave.domain.installs import PartState
from exclave.storage import install_parts
from exclave.storage.engine.database import Tx
from exclave.wire.installs import Upgrade, UpgradeReply
from tests.integration.control.conftest import World
from tests.integration.control.install_changes_kit import (
    ALL,
    make_active,
    name_deploys,
    read_inputs,
)
from tests.integration.control.rows_kit import count_rows
from tests.support.installs import COMPONENTS, INPUTS, add_config


async def upgrade(world: World, install: InstallId, **wish: Any) -> UpgradeReply:
    return await upgrades.upgrade_install(
        world.deps, world.user, install, Upgrade.model_validate(wish)
    )


def change(*names: str) -> list[dict[str, Any]]:
    return [{**each, "hash": "new"} if each["name"] in names else dict(each) for each in COMPONENTS]


async def test_a_new_config_moves_nobody_by_itself(world: World) -> None:
    app, install = await make_active(world, *ALL)

    await add_config(world.deps, world.user, app, components=change("api"))

    shown = await installs.show_install(world.deps, world.user, install)
    assert (shown.config_version, shown.newest_version) == (1, 2)
    assert all(part.is_current for part in shown.parts)


async def test_an_upgrade_shows_what_differs_and_moves_the_pin_only(world: World) -> None:
    app, install = await make_active(world, *ALL)
    more = [*change("api"), {"name": "cache", "needs": [], "inputs": []}]
    await add_config(world.deps, world.user, app, components=more, readme="new")

    planned = await upgrade(world, install, dry_run=True)
    moved = await upgrade(world, install)

    assert planned == moved
    assert (moved.from_version, moved.to_version, moved.workflow) == (1, 2, None)
    assert [(part.part, part.change) for part in moved.parts] == [
        ("component:api", "changed"),
        ("component:cache", "added"),
        ("metadata", "changed"),
    ]
    shown = await installs.show_install(world.deps, world.user, install)
    assert (shown.config_version, shown.workflows) == (2, [])
    assert [part.part for part in shown.parts if not part.is_current] == [
        "component:api",
        "component:cache",
    ]
    state = await state_views.show_state(world.deps, world.user, install)
    assert "cache" in state.document["components"]  # type: ignore[operator]


async def test_an_upgrade_with_deploy_brings_what_differs_and_what_needs_it(world: World) -> None:
    app, install = await make_active(world, *ALL)
    await add_config(world.deps, world.user, app, components=change("api"))

    moved = await upgrade(world, install, deploy=True)

    assert moved.workflow is not None
    assert (moved.workflow.name, name_deploys(moved)) == ("deploy", {"api", "web"})


async def test_a_changed_sandbox_is_brought_with_all_on_it(world: World) -> None:
    app, install = await make_active(world, *ALL)
    await add_config(world.deps, world.user, app, sandbox_hash="s2")

    moved = await upgrade(world, install, deploy=True)

    assert moved.workflow is not None
    assert moved.workflow.name == "reprovision_sandbox"


async def test_an_upgrade_to_what_it_has_does_nothing(world: World) -> None:
    _, install = await make_active(world, *ALL)
    before = await count_rows(world.deps)

    moved = await upgrade(world, install, deploy=True)

    assert (moved.parts, moved.workflow) == ([], None)
    assert await count_rows(world.deps) == before


async def test_a_part_whose_deploy_failed_is_brought_again(world: World) -> None:
    app, install = await make_active(world, *ALL)
    await add_config(world.deps, world.user, app, components=change("web"))
    await upgrade(world, install)

    def fail(tx: Tx) -> None:
        org, failed = world.user.org, PartState.FAILED
        install_parts.save_state(
            tx, org, install, "component:web", failed, workflow="wfl_" + "0" * 26
        )

    await world.deps.db.write(fail)
    back = await upgrade(world, install, config=1, deploy=True)

    assert [(part.part, part.change) for part in back.parts] == [("component:web", "changed")]
    assert name_deploys(back) == {"web"}


async def test_a_later_deploy_brings_what_an_upgrade_left(world: World) -> None:
    app, install = await make_active(world, *ALL)
    await add_config(world.deps, world.user, app, components=change("web"))
    await upgrade(world, install)

    again = await upgrade(world, install, deploy=True)

    assert [(part.part, part.change) for part in again.parts] == [("component:web", "changed")]
    assert name_deploys(again) == {"web"}


async def test_what_runs_is_not_lost_by_an_upgrade(world: World) -> None:
    app, install = await make_active(world, *ALL)
    await add_config(world.deps, world.user, app, components=COMPONENTS[:3])

    planned = await upgrade(world, install, dry_run=True)
    assert ("component:jobs", "removed") in [(part.part, part.change) for part in planned.parts]
    (obstacle,) = planned.obstacles
    assert "component:jobs" in obstacle.message
    assert obstacle.hint == "Tear it down first: exclave installs teardown acme jobs"
    with pytest.raises(Conflict, match="component:jobs") as caught:
        await upgrade(world, install)

    assert "installs teardown acme jobs" in caught.value.advice
    assert (await installs.show_install(world.deps, world.user, install)).config_version == 1


async def test_new_inputs_come_with_the_upgrade(world: World) -> None:
    app, install = await make_active(world, *ALL)
    size = {"name": "size", "group": "web", "required": True}
    kept = [each for each in INPUTS if each["name"] != "api_key"]
    await add_config(world.deps, world.user, app, inputs=[*kept, size])

    planned = await upgrade(world, install, dry_run=True)
    (obstacle,) = planned.obstacles
    assert "`size`: it is required" in obstacle.message
    assert obstacle.hint == "Give values: --input size=…"
    assert planned.dropped_inputs == ["api_key"]
    with pytest.raises(BadInputs, match="`size`: it is required"):
        await upgrade(world, install)
    moved = await upgrade(world, install, inputs={"size": "big"})

    assert (moved.changed_inputs, moved.dropped_inputs) == (["size"], ["api_key"])
    assert await read_inputs(world, install) == {
        "domain": "acme.test",
        "replicas": "2",
        "debug": "false",
        "zone": "a",
        "size": "big",
    }


async def test_a_changed_default_is_a_changed_value(world: World) -> None:
    app, install = await make_active(world, *ALL)
    inputs = [{**each, "default": "5"} if each["name"] == "replicas" else each for each in INPUTS]
    await add_config(world.deps, world.user, app, inputs=inputs)

    moved = await upgrade(world, install, deploy=True)

    assert moved.changed_inputs == ["replicas"]
    assert name_deploys(moved) == {"api", "web"}


async def test_a_value_must_fit_its_new_type(world: World) -> None:
    app, install = await make_active(world)
    inputs = [{**each, "type": "number"} if each["name"] == "domain" else each for each in INPUTS]
    await add_config(world.deps, world.user, app, inputs=inputs)

    with pytest.raises(BadInputs, match="`domain`: its value is not a number"):
        await upgrade(world, install)


async def test_a_new_secret_asks_the_customer_for_a_new_stack(world: World) -> None:
    app, install = await make_active(world, *ALL)
    secret = {"name": "token", "display_name": "Token", "description": "A token."}
    await add_config(world.deps, world.user, app, components=change("api"), secrets=[secret])

    moved = await upgrade(world, install, deploy=True)

    assert moved.new_stack
    assert moved.workflow is not None
    assert "stack" in [step.name for step in moved.workflow.steps]
    assert (await count_rows(world.deps))["stack_versions"] == 2


async def test_an_install_goes_back_to_an_older_config(world: World) -> None:
    app, install = await make_active(world, *ALL)
    await add_config(world.deps, world.user, app, components=change("api"))
    await upgrade(world, install)

    back = await upgrade(world, install, config=1)

    assert (back.from_version, back.to_version, back.parts) == (2, 1, [])
    with pytest.raises(NotFound, match="no config 9"):
        await upgrade(world, install, config=9)


async def test_nothing_is_deployed_to_what_is_not_there(world: World) -> None:
    app, install = await make_active(world)
    await add_config(world.deps, world.user, app, components=change("api"))

    with pytest.raises(Conflict, match="there is nothing to deploy to"):
        await upgrade(world, install, deploy=True)

    assert (await installs.show_install(world.deps, world.user, install)).config_version == 1
