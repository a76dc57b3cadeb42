"""Changing installs: inputs, configs, files. Exactly what is touched is deployed again."""

from typing import Any

import pytest

from exclave.base.errors import Conflict, Forbidden, NotFound
from exclave.control import (
    install_configs,
    install_inputs,
    install_upgrades,
    install_values,
    install_views,
    installs,
)
from exclave.control.input_values import BadInputs
from exclave.control.install_configs import TwoFiles
from exclave.domain.identity import InstallId, Role
from exclave.storage import install_parts, install_states
from exclave.storage.database import Tx
from exclave.wire.installs import (
    InputsChanged,
    InstallsSynced,
    SetInputs,
    SyncInstalls,
    Upgrade,
    UpgradeReply,
)
from tests.installs_kit import COMPONENTS, INPUTS, add_config, make_app, make_app_install
from tests.integration.control.conftest import World
from tests.integration.control.test_installs import count_rows, make_user

ALL = ("sandbox", *(f"component:{each['name']}" for each in COMPONENTS))


async def make_active(world: World, *parts: str, **more: Any) -> tuple[str, InstallId]:
    """Make an install that has deployed these parts from config 1."""
    deps, user = world.deps, world.user
    app = await make_app(deps, user, **more)
    made = await make_app_install(deps, user, app, inputs={"api_key": "old"}, provision=False)

    def deploy(tx: Tx) -> None:
        row = install_states.find_app_install(tx, user.org, made.id)
        assert row is not None
        for part in parts:
            values = {"state": "active", "config_id": row.config_id}
            install_parts.save_part(tx, user.org, made.id, part, values)
        if parts:
            install_states.update_app_install(tx, user.org, made.id, {"state": "active"})

    await deps.db.write(deploy)
    return app, InstallId(made.id)


async def set_inputs(world: World, install: InstallId, **wish: Any) -> InputsChanged:
    return await install_inputs.set_inputs(
        world.deps, world.user, install, SetInputs.model_validate(wish)
    )


async def read_inputs(world: World, install: InstallId) -> dict[str, Any]:
    state = await install_views.show_state(world.deps, world.user, install)
    return state.document["inputs"]["inputs"]  # type: ignore[index,call-overload,return-value]


def name_deploys(reply: InputsChanged | UpgradeReply) -> set[str]:
    steps = reply.workflow.steps if reply.workflow else []
    return {step.name.partition(".")[0] for step in steps if step.name.endswith("apply")}


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
        return install_values.read_sensitive(tx, world.deps, world.user.org, install, names)

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
        return install_inputs.take_customer_inputs(
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


async def upgrade(world: World, install: InstallId, **wish: Any) -> UpgradeReply:
    return await install_upgrades.upgrade_install(
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
        ("component:api", "changed"), ("component:cache", "added"), ("metadata", "changed"),
    ]  # fmt: skip
    shown = await installs.show_install(world.deps, world.user, install)
    assert (shown.config_version, shown.workflows) == (2, [])
    assert [part.part for part in shown.parts if not part.is_current] == [
        "component:api",
        "component:cache",
    ]
    state = await install_views.show_state(world.deps, world.user, install)
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
        values = {"state": "failed", "message": "half-way"}
        install_parts.save_part(tx, world.user.org, install, "component:web", values)

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
    with pytest.raises(Conflict, match="component:jobs") as caught:
        await upgrade(world, install)

    assert "installs teardown acme jobs" in caught.value.advice
    assert (await installs.show_install(world.deps, world.user, install)).config_version == 1


async def test_new_inputs_come_with_the_upgrade(world: World) -> None:
    app, install = await make_active(world, *ALL)
    size = {"name": "size", "group": "web", "required": True}
    kept = [each for each in INPUTS if each["name"] != "api_key"]
    await add_config(world.deps, world.user, app, inputs=[*kept, size])

    with pytest.raises(BadInputs, match="`size`: it is required"):
        await upgrade(world, install)
    moved = await upgrade(world, install, inputs={"size": "big"})

    assert (moved.changed_inputs, moved.dropped_inputs) == (["size"], ["api_key"])
    assert await read_inputs(world, install) == {
        "domain": "acme.test", "replicas": "2", "debug": "false", "zone": "a", "size": "big",
    }  # fmt: skip


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


def a_file(name: str = "acme", **more: Any) -> dict[str, Any]:
    return {"name": name, "inputs": {"domain": "acme.test"}, **more}


async def sync(world: World, *files: dict[str, Any], dry_run: bool = False) -> InstallsSynced:
    wish = SyncInstalls.model_validate({"app": "shop", "installs": files, "dry_run": dry_run})
    return await install_configs.sync_installs(world.deps, world.user, wish)


def tell(done: InstallsSynced) -> list[tuple[str, str, list[str]]]:
    return [(e.name, e.action, [change.what for change in e.changes]) for e in done.installs]


async def test_files_create_installs_and_later_change_them(world: World) -> None:
    await make_app(world.deps, world.user)

    looked = await sync(world, a_file("one"), a_file("two", labels={"a": "b"}), dry_run=True)
    made = await sync(world, a_file("one"), a_file("two", labels={"a": "b"}))
    again = await sync(world, a_file("one"), a_file("two", labels={"a": "b"}))
    more = {
        "labels": {"c": "d"},
        "approval_option": "approve-all",
        "inputs": {"domain": "new.test"},
    }
    changed = await sync(world, a_file("two") | more)

    assert not looked.applied
    assert made.applied
    assert tell(looked) == tell(made)
    assert tell(made)[1] == (
        "two", "create",
        ["inputs.domain", "inputs.replicas", "inputs.debug", "inputs.zone", "labels.a", "approval_option"],
    )  # fmt: skip
    assert [each.action for each in again.installs] == ["none", "none"]
    assert tell(changed) == [("two", "update", ["inputs.domain", "labels.c", "approval_option"])]
    two = next(each for each in made.installs if each.name == "two")
    shown = await installs.show_install(world.deps, world.user, InstallId(two.install_id or ""))
    assert (shown.managed_by, shown.approve_all) == ("config", True)
    assert shown.labels == {"a": "b", "c": "d"}
    assert (await read_inputs(world, InstallId(shown.id)))["domain"] == "new.test"


async def test_one_bad_file_stops_all(world: World) -> None:
    await make_app(world.deps, world.user)
    before = await count_rows(world.deps)

    done = await sync(world, a_file("good"), {"name": "bad"}, a_file("prod"))

    assert [(each.action, each.problem) for each in done.installs] == [
        ("create", ""),
        ("refuse", "the input `domain`: it is required and has no value (Where it is served.)."),
        ("refuse", "there is an install `prod` without an app"),
    ]
    assert (done.applied, await count_rows(world.deps)) == (False, before)


async def test_an_install_is_managed_by_files_or_by_hand(world: World) -> None:
    await make_app(world.deps, world.user)
    made = InstallId((await make_app_install(world.deps, world.user, "shop")).id)

    refused = await sync(world, a_file(inputs={"domain": "new.test"}))
    await installs.set_managed_by(world.deps, world.user, made, "config")
    done = await sync(world, a_file(inputs={"domain": "new.test"}))

    assert "exclave installs manage acme by-config" in refused.installs[0].hint
    assert done.applied
    with pytest.raises(Conflict, match="come from its file"):
        await set_inputs(world, made, values={"domain": "by.hand"})


async def test_a_secret_in_a_file_is_warned_of_and_not_shown(world: World) -> None:
    await make_app(world.deps, world.user)

    done = await sync(world, a_file(inputs={"domain": "a.test", "api_key": "hunter2"}))

    assert "for all to read" in done.installs[0].warnings[0]
    assert "hunter2" not in done.model_dump_json()


async def test_two_files_about_one_install_are_refused(world: World) -> None:
    await make_app(world.deps, world.user)

    with pytest.raises(TwoFiles, match="`acme`"):
        await sync(world, a_file(), a_file())


async def test_files_that_approve_need_the_right_to(world: World) -> None:
    await make_app(world.deps, world.user)
    operator = await make_user(world.deps, world.user, Role.OPERATOR)
    wish = SyncInstalls.model_validate(
        {"app": "shop", "installs": [a_file(approval_option="auto")]}
    )

    with pytest.raises(Forbidden):
        await install_configs.sync_installs(world.deps, operator, wish)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"component_toggles": {"nope": True}}, "the app has no component `nope`"),
        ({"component_toggles": {"web": False}}, "`web` is not toggleable"),
        ({"component_toggles": {"api": False}}, "`web` is on and needs `api`, which is off"),
        ({"components": {"nope": {"tf_vars": "a = 1"}}}, "the app has no component `nope`"),
        ({"components": {"web": {"tf_vars": "a = ["}}}, "`[` at line 1, column 5 is never closed"),
        ({"components": {"web": {"tf_vars": "{"}}}, "not JSON"),
        ({"components": {"web": {"helm_values": "a: 1"}}}, "`web` is a terraform_module"),
    ],
)
async def test_options_that_cannot_be_are_refused(
    world: World, more: dict[str, Any], told: str
) -> None:
    on = {"toggleable": True, "default_enabled": True}
    components = [{**each, **(on if each["name"] == "api" else {})} for each in COMPONENTS]
    await make_app(world.deps, world.user, components=components)

    done = await sync(world, a_file(**more))

    assert not done.applied
    assert told in done.installs[0].problem
