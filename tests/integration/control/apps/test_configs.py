"""Versions of an app: in order, listed, compared."""

import asyncio
from pathlib import Path

import pytest

from exclave.base.errors import Conflict, NotFound
from exclave.control.apps import configs
from exclave.control.deps import Deps
from exclave.domain.identity import User
from tests.integration.control.syncing_kit import count_synced
from tests.support.apps import edit, make_app, sync, write_app


async def test_versions_are_listed_and_compared(deps: Deps, user: User, tmp_path: Path) -> None:
    await make_app(deps, user)
    for who in ("moon", "sun", "sea"):
        app = edit(write_app(tmp_path), "inputs.toml", '"world"', f'"{who}"')
        await sync(deps, user, app)

    page = await configs.list_configs(deps, user, "demo", "", 2)
    rest = await configs.list_configs(deps, user, "demo", page.next or "", 2)
    diff = await configs.compare_configs(deps, user, "demo", 1, 3)

    assert [(each.version, each.current) for each in page.items] == [(3, True), (2, False)]
    assert [each.version for each in rest.items] == [1]
    assert [(field.path, field.before, field.after) for field in diff.parts[0].fields] == [
        ("default", "moon", "sea")
    ]
    with pytest.raises(NotFound):
        await configs.compare_configs(deps, user, "demo", 1, 4)


async def test_syncs_at_the_same_time_make_versions_in_order(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    await make_app(deps, user)
    made = [
        edit(write_app(tmp_path / str(number)), "inputs.toml", '"world"', f'"n{number}"')
        for number in range(4)
    ]

    replies = await asyncio.gather(*(sync(deps, user, app) for app in made), return_exceptions=True)

    done = [each for each in replies if not isinstance(each, BaseException)]
    assert all(isinstance(each, Conflict) for each in replies if isinstance(each, BaseException))
    versions = sorted(each.config.version for each in done if each.config)
    assert versions == list(range(1, len(done) + 1))
    page = await configs.list_configs(deps, user, "demo", "", 50)
    assert [each.version for each in page.items] == versions[::-1]


async def test_the_same_directory_synced_twice_at_once_makes_one_version(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    await make_app(deps, user)
    app = write_app(tmp_path)

    replies = await asyncio.gather(*(sync(deps, user, app) for _ in range(3)))

    assert sorted(each.changed for each in replies) == [False, False, True]
    assert (await count_synced(deps))["configs"] == 1
