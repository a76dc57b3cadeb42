"""Installs described by files: made, changed, or refused as one."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from exclave.base.errors import Conflict, Forbidden
from exclave.control.deps import Deps
from exclave.control.installs import config_files, installs
from exclave.control.installs.config_files import TwoFiles
from exclave.domain.identity import InstallId, Role, User
from exclave.domain.installs import ManagedBy
from exclave.domain.workflows import WorkflowState
from exclave.wire.installs import InstallsSynced, SyncInstalls, WorkflowKind
from tests.integration.control.conftest import World
from tests.integration.control.install_changes_kit import read_inputs, set_inputs
from tests.integration.control.rows_kit import count_rows
from tests.support.apps import edit
from tests.support.install_fixture import NOTICEBOARD, provision
from tests.support.installs import COMPONENTS, make_app, make_app_install
from tests.support.world import make_user


def a_file(name: str = "acme", **more: Any) -> dict[str, Any]:
    return {"name": name, "inputs": {"domain": "acme.test"}, **more}


async def sync(world: World, *files: dict[str, Any], dry_run: bool = False) -> InstallsSynced:
    wish = SyncInstalls.model_validate({"app": "shop", "installs": files, "dry_run": dry_run})
    return await config_files.sync_installs(world.deps, world.user, wish)


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
        "two",
        "create",
        [
            "inputs.domain",
            "inputs.replicas",
            "inputs.debug",
            "inputs.zone",
            "labels.a",
            "approval_option",
        ],
    )
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
    await installs.set_managed_by(world.deps, world.user, made, ManagedBy.CONFIG)
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
        await config_files.sync_installs(world.deps, operator, wish)


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


async def test_a_file_switches_a_component_and_changes_its_variables(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    app = shutil.copytree(NOTICEBOARD, tmp_path / "noticeboard")
    text = "toggleable = true\ndefault_enabled = true\nskip_noops = true\n"
    edit(app, "components/page.toml", "skip_noops = true\n", text)
    life = await provision(deps, user, app)
    await installs.set_managed_by(deps, user, InstallId(life.install), ManagedBy.CONFIG)
    options = {
        "component_toggles": {"page": False},
        "components": {"cache": {"tf_vars": 'size = 7\nname = "{{ .nuon.install.name }}"'}},
    }
    config = {"name": "acme", "approval_option": "approve-all", **options}
    wish = SyncInstalls.model_validate({"app": life.app, "installs": [config]})

    done = (await config_files.sync_installs(deps, user, wish)).installs[0]
    await life.run()
    again = (await config_files.sync_installs(deps, user, wish)).installs[0]

    assert [change.what for change in done.changes] == [
        "component_toggles.page",
        "components.cache.tf_vars",
    ]
    assert (await life.show(done.teardown_id or "")).state is WorkflowState.SUCCEEDED
    assert "destroy-apply component:page" in life.ran
    assert "apply component:api" in life.ran, "it stands on the cache"
    assert life.specs["apply component:cache"].var_files[-1] == 'size = 7\nname = "acme"'
    assert (again.action, again.workflow_id) == ("none", None)

    life.ran.clear()
    await life.start(WorkflowKind.DEPLOY_ALL)
    await life.run()
    assert "plan component:page" not in life.ran
