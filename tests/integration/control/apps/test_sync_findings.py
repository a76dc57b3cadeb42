"""Mistakes in an app that is synced: all are told, and nothing is stored."""

from pathlib import Path
from typing import Any

import pytest

from exclave.control.apps.sync import AppInvalid
from exclave.control.deps import Deps
from exclave.domain.identity import User
from tests.integration.control.syncing_kit import count_synced, list_archives
from tests.support.apps import make_app, sync, write_app


async def test_errors_are_told_all_at_once_and_nothing_is_stored(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    await make_app(deps, user)
    app = write_app(tmp_path, changes={"runner.toml": "runner_type = 3\n", "sandbox.toml": None})

    with pytest.raises(AppInvalid) as caught:
        await sync(deps, user, app)

    found: Any = caught.value.facts["diagnostics"]
    assert {(each["code"], each["file"], each["text"]) for each in found} >= {
        ("wrong_type", "runner.toml", "runner_type = 3"),
        ("file_missing", "sandbox.toml", None),
    }
    assert set((await count_synced(deps)).values()) == {0}
    assert await list_archives(deps) == []


async def test_warnings_are_told_and_strict_makes_them_errors(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    await make_app(deps, user)
    app = write_app(tmp_path, changes={"metadata.toml": 'version = "v2"\ncolour = "red"\n'})

    with pytest.raises(AppInvalid):
        await sync(deps, user, app, strict=True)
    reply = await sync(deps, user, app)

    assert [(each.severity, each.code) for each in reply.findings] == [("warning", "unknown_key")]


async def test_a_remote_file_is_an_error_because_a_sync_fetches_nothing(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    await make_app(deps, user)
    text = 'version = "v2"\nreadme = "https://example.com/README.md"\n'
    app = write_app(tmp_path, changes={"metadata.toml": text})

    with pytest.raises(AppInvalid) as caught:
        await sync(deps, user, app)

    found: Any = caught.value.facts["diagnostics"]
    assert found[0]["hint"] == "A sync fetches nothing: keep the file in the app directory."


async def test_a_component_cannot_change_its_type(deps: Deps, user: User, tmp_path: Path) -> None:
    await make_app(deps, user)
    await sync(deps, user, write_app(tmp_path))
    text = 'name = "page"\ntype = "job"\nimage_url = "a"\ntag = "1"\n'
    app = write_app(tmp_path, changes={"components/page.toml": text, "actions/greet.toml": None})

    with pytest.raises(AppInvalid) as caught:
        await sync(deps, user, app)

    found: Any = caught.value.facts["diagnostics"]
    assert "type_changed" in {each["code"] for each in found}
