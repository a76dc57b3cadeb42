"""Apps: their names, and who may see and sync them."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from exclave.base.errors import Conflict, Forbidden, NotFound, Problem
from exclave.control.apps import apps, configs
from exclave.control.deps import Deps
from exclave.domain.identity import Grant, Role, ScopeKind, User
from exclave.wire.apps import NewApp
from tests.support.apps import make_app, sync, write_app
from tests.support.world import make_org


def as_user(user: User, role: Role, scope: ScopeKind = ScopeKind.ORG, on: str = "") -> User:
    return User(user.org, user.account, "somebody", user.token, (Grant(role, scope, on),))


async def test_apps_of_others_do_not_exist(deps: Deps, user: User, tmp_path: Path) -> None:
    app_id = await make_app(deps, user)
    reply = await sync(deps, user, write_app(tmp_path))
    assert reply.config is not None
    other = await make_org(deps, "other")

    for app in ("demo", app_id):
        with pytest.raises(NotFound):
            await sync(deps, other, write_app(tmp_path), app=app)
        with pytest.raises(NotFound):
            await apps.show_app(deps, other, app)
        with pytest.raises(NotFound):
            await configs.list_configs(deps, other, app, "", 10)
        with pytest.raises(NotFound):
            await configs.compare_configs(deps, other, app, 1, 1)
    assert (await apps.list_apps(deps, other, "", 10)).items == []


async def test_a_grant_on_an_app_covers_that_app_only(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    app_id = await make_app(deps, user)
    await make_app(deps, user, "other")
    somebody = as_user(user, Role.OPERATOR, ScopeKind.APP, app_id)
    viewer = as_user(user, Role.VIEWER, ScopeKind.APP, app_id)

    await sync(deps, user, write_app(tmp_path))

    reply = await sync(deps, somebody, write_app(tmp_path))

    assert not reply.changed
    assert [each.name for each in (await apps.list_apps(deps, viewer, "", 10)).items] == ["demo"]
    with pytest.raises(NotFound):
        await sync(deps, somebody, write_app(tmp_path), app="other")
    with pytest.raises(Forbidden):
        await sync(deps, viewer, write_app(tmp_path))
    with pytest.raises(Problem):
        await apps.create_app(deps, somebody, NewApp(name="third"))


async def test_somebody_with_one_install_sees_no_app(deps: Deps, user: User) -> None:
    await make_app(deps, user)
    guest = as_user(user, Role.OPERATOR, ScopeKind.INSTALL, "ins_x")

    with pytest.raises(NotFound):
        await apps.show_app(deps, guest, "demo")
    with pytest.raises(NotFound):
        await apps.list_apps(deps, guest, "", 10)


async def test_the_right_to_see_is_enough_to_look(deps: Deps, user: User, tmp_path: Path) -> None:
    await make_app(deps, user)
    await sync(deps, user, write_app(tmp_path))
    viewer = as_user(user, Role.VIEWER)

    assert (await apps.show_app(deps, viewer, "demo")).config is not None
    with pytest.raises(Forbidden):
        await sync(deps, viewer, write_app(tmp_path), dry_run=True)


async def test_two_apps_cannot_have_the_same_name(deps: Deps, user: User) -> None:
    await make_app(deps, user)

    with pytest.raises(Conflict):
        await make_app(deps, user)
    await make_app(deps, await make_org(deps, "other"))


@pytest.mark.parametrize("name", ["a-", "a_-b", "-a", "A", "a.b", "", "a" * 64, "a___b", "../x"])
def test_a_name_that_no_repository_can_have_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        NewApp(name=name)


@pytest.mark.parametrize("name", ["a", "a-b", "a--b", "a_b", "a__b", "0", "a" * 63])
def test_other_names_are_fine(name: str) -> None:
    assert NewApp(name=name).name == name
