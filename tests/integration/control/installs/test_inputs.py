"""Inputs of installs: exactly what reads a changed one is deployed again."""

from typing import Any

import pytest

from exclave.base.errors import NotFound
from exclave.control.installs import input_versions, installs
from exclave.control.installs import inputs as install_inputs
from exclave.control.installs.input_validation import BadInputs
from exclave.storage.engine.database import Tx
from tests.integration.control.conftest import World
from tests.integration.control.install_changes_kit import (
    ALL,
    make_active,
    name_deploys,
    read_inputs,
    set_inputs,
)
from tests.integration.control.rows_kit import count_rows
from tests.support.installs import COMPONENTS


@pytest.mark.parametrize(
    ("values", "components"),
    [
        ({"replicas": "3"}, {"api", "web"}),
        ({"debug": "true"}, {"web"}),
        ({"api_key": "new"}, {"jobs"}),
        ({"debug": "true", "api_key": "new"}, {"web", "jobs"}),
    ],
)
async def test_exactly_what_reads_an_input_is_deployed_again(
    world: World, values: dict[str, str], components: set[str]
) -> None:
    _, install = await make_active(world, *ALL)

    changed = await set_inputs(world, install, values=values)

    assert set(changed.changed) == set(values)
    assert set(changed.components) == name_deploys(changed) == components
    assert changed.workflow is not None
    assert changed.workflow.name == "input_update"


async def test_an_input_of_the_sandbox_touches_everything(world: World) -> None:
    _, install = await make_active(world, *ALL, sandbox_inputs=["replicas"])

    changed = await set_inputs(world, install, values={"replicas": "3"})

    assert changed.sandbox
    assert name_deploys(changed) == {"sandbox-apply", "network", "api", "web", "jobs"}


@pytest.mark.parametrize(
    "wish",
    [
        {"values": {"replicas": "2"}},
        {"values": {"domain": "acme.test", "api_key": "old"}},
        {"unset": ["debug"]},
    ],
)
async def test_a_value_that_holds_already_starts_nothing(
    world: World, wish: dict[str, Any]
) -> None:
    _, install = await make_active(world, *ALL)

    changed = await set_inputs(world, install, **wish)

    assert (changed.changed, changed.workflow) == ([], None)
    assert (await installs.show_install(world.deps, world.user, install)).workflows == []


async def test_values_are_kept_version_by_version(world: World) -> None:
    _, install = await make_active(world)

    first = await set_inputs(world, install, values={"replicas": "3"})
    second = await set_inputs(world, install, values={"api_key": "new"}, unset=["replicas"])

    assert (first.version, second.version) == (2, 3)
    assert second.changed == ["replicas", "api_key"]
    old = await install_inputs.show_inputs(world.deps, world.user, install, 2)
    now = await install_inputs.show_inputs(world.deps, world.user, install)
    assert [(i.value, i.is_set) for i in (old.inputs[1], now.inputs[1])] == [
        ("3", True),
        ("2", False),
    ]
    assert (now.inputs[3].value, now.inputs[3].sensitive) == (None, True)
    assert (await read_inputs(world, install))["api_key"] == "((exclave:input:api_key))"
    with pytest.raises(NotFound):
        await install_inputs.show_inputs(world.deps, world.user, install, 4)


async def test_a_runner_reads_the_newest_sensitive_value(world: World) -> None:
    _, install = await make_active(world)
    await set_inputs(world, install, values={"api_key": "new"})

    def read(tx: Tx) -> dict[str, str]:
        names = ["api_key", "domain", "nothing"]
        return input_versions.read_sensitive(tx, world.deps, world.user.org, install, names)

    assert await world.deps.db.read(read) == {"api_key": "new"}


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        ({"values": {"domain": ""}}, "required"),
        ({"unset": ["domain"]}, "required"),
        ({"unset": ["nothing"]}, "no such input"),
        ({"values": {"zone": "b"}}, "the customer sets it"),
        ({"values": {"replicas": "x", "debug": "y"}}, "2 inputs"),
        ({"values": {"replicas": "x"}, "unset": ["domain"]}, "2 inputs"),
        ({"values": {"domain": "((exclave:secret:x))"}}, "may not contain"),
    ],
)
async def test_bad_values_change_nothing(world: World, wish: dict[str, Any], told: str) -> None:
    _, install = await make_active(world, *ALL)
    before = await count_rows(world.deps)

    with pytest.raises(BadInputs, match=told):
        await set_inputs(world, install, **wish)

    assert await count_rows(world.deps) == before


async def test_a_dry_run_tells_and_does_nothing(world: World) -> None:
    _, install = await make_active(world, *ALL)
    before = await count_rows(world.deps)

    changed = await set_inputs(world, install, values={"replicas": "3"}, dry_run=True)

    assert (changed.changed, changed.components) == (["replicas"], ["api", "web"])
    assert await count_rows(world.deps) == before


async def test_what_is_not_deployed_is_not_deployed_by_an_input(world: World) -> None:
    _, install = await make_active(world, "sandbox", "component:network")

    changed = await set_inputs(world, install, values={"debug": "true"})

    assert (changed.components, changed.workflow) == (["web"], None)
    assert (await read_inputs(world, install))["debug"] == "true"


async def test_the_customer_owns_their_inputs(world: World) -> None:
    components = [{**each, "inputs": ["zone"]} for each in COMPONENTS]
    _, install = await make_active(world, *ALL, components=components)

    def report(tx: Tx, values: dict[str, str]) -> list[str]:
        return install_inputs.store_customer_inputs(
            tx, world.deps, world.user.org, install, values, "stack"
        )

    assert await world.deps.db.write(lambda tx: report(tx, {"zone": "b", "domain": "x"})) == [
        "zone"
    ]
    assert await world.deps.db.write(lambda tx: report(tx, {"zone": "b"})) == []
    inputs = await read_inputs(world, install)
    assert (inputs["zone"], inputs["domain"]) == ("b", "acme.test")
    flows = (await installs.show_install(world.deps, world.user, install)).workflows
    assert [(flow.name, flow.created_by) for flow in flows] == [("input_update", "stack")]
