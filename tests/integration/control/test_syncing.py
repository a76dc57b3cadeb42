"""Syncing on both databases: one transaction, or nothing."""

import asyncio
import io
import os
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from sqlalchemy import func, select, update

from exclave.appconfig.apps import read_app
from exclave.appconfig.freezing import freeze, thaw
from exclave.base.archives import ArchiveProblem
from exclave.base.errors import Conflict, Forbidden, NotFound, Problem
from exclave.control import apps, configs
from exclave.control.deps import Deps
from exclave.control.syncing import AppInvalid, SyncWish, sync_app
from exclave.domain.identity import (
    Grant,
    QueueId,
    QueueKind,
    Role,
    RunnerId,
    RunnerIdentity,
    ScopeKind,
    User,
)
from exclave.storage import configs as stored
from exclave.storage.database import Tx
from exclave.storage.schema import metadata
from exclave.wire.apps import NewApp
from tests.apps import in_pieces, make_app, pack, sync, write_app
from tests.world import make_org

WATCHED = ("configs", "config_parts", "builds", "config_builds", "workflows", "steps", "jobs")


@pytest.fixture
async def user(deps: Deps) -> User:
    return await make_org(deps)


async def count_rows(deps: Deps) -> dict[str, int]:
    def count(tx: Tx) -> dict[str, int]:
        return {
            name: int(tx.run(select(func.count()).select_from(metadata.tables[name])).scalar_one())
            for name in WATCHED
        }

    return await deps.db.read(count)


async def list_blobs(deps: Deps) -> list[str]:
    return [key for key in await deps.blobs.list_keys() if key.startswith("configs/")]


async def test_a_sync_stores_a_version_with_its_parts_and_starts_the_builds(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    app = await make_app(deps, user)

    reply = await sync(deps, user, write_app(tmp_path))

    assert reply.changed
    assert reply.config is not None
    assert (reply.config.version, reply.config.components) == (1, ["greeting", "page"])
    assert reply.diff.builds == ["component:greeting", "component:page", "sandbox"]
    assert reply.workflow_id is not None
    assert (await apps.show_app(deps, user, "demo")).config == reply.config
    config = await deps.db.read(lambda tx: stored.find_config(tx, user.org, reply.config.id))  # type: ignore[union-attr]
    assert config is not None
    assert config.app_id == app
    assert config.outline["order"] == [["greeting"], ["page"]]
    assert config.outline["components"][1] == {
        "name": "page", "type": "terraform_module", "needs": ["greeting"], "inputs": [],
        "hash": config.outline["components"][1]["hash"], "toggleable": False,
        "default_enabled": False,
    }  # fmt: skip
    assert config.outline["cloud"] == "local"
    assert sorted(config.outline["folders"]) == [
        "modules/greeting", "modules/page", "modules/sandbox",
    ]  # fmt: skip
    assert (await count_rows(deps))["jobs"] == 3


async def test_every_part_can_be_read_back(deps: Deps, user: User, tmp_path: Path) -> None:
    await make_app(deps, user)
    reply = await sync(deps, user, write_app(tmp_path))
    assert reply.config is not None
    config = reply.config.id

    rows = await deps.db.read(lambda tx: stored.list_all_parts(tx, user.org, config))

    assert [(row.section, row.name) for row in rows] == [
        ("metadata", ""), ("sandbox", ""), ("runner", ""), ("input_group", "greeting"),
        ("input", "who"), ("component", "greeting"), ("component", "page"), ("action", "greet"),
    ]  # fmt: skip
    readme = next(row for row in rows if row.section == "metadata").value["readme"]
    assert readme.startswith("# Demo")
    entries = read_app(tmp_path / "demo").app.entries
    assert [row.value for row in rows] == [freeze(entry.value) for entry in entries]


async def test_unchanged_content_makes_no_version_and_no_job(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    await make_app(deps, user)
    first = await sync(deps, user, write_app(tmp_path))
    before = await count_rows(deps)
    app = write_app(tmp_path / "elsewhere", "demo", {"NOTES.txt": "nothing that the app reads"})
    (app / "components/page.toml").write_text(
        "# another comment\n" + (app / "components/page.toml").read_text()
    )

    again = await sync(deps, user, app)

    assert (again.changed, again.config, again.diff.parts) == (False, first.config, [])
    assert await count_rows(deps) == before
    assert len(await list_blobs(deps)) == 1


async def test_a_change_builds_what_it_touches_and_nothing_else(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    await make_app(deps, user)
    app = write_app(tmp_path)
    await sync(deps, user, app)
    (app / "modules/page/main.tf").write_text(
        (app / "modules/page/main.tf").read_text().replace("h1", "h2")
    )

    reply = await sync(deps, user, app)

    assert reply.config is not None
    assert reply.config.version == 2
    assert reply.diff.builds == ["component:page"]
    assert [(part.section, part.name, part.change) for part in reply.diff.parts] == [
        ("component", "page", "changed")
    ]
    assert [field.path for field in reply.diff.parts[0].fields] == ["files"]


async def test_variables_change_the_version_and_build_nothing(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    await make_app(deps, user)
    app = write_app(tmp_path)
    await sync(deps, user, app)
    jobs = (await count_rows(deps))["jobs"]
    text = (app / "components/page.toml").read_text()
    (app / "components/page.toml").write_text(text.replace("text }}", "text }}!"))

    reply = await sync(deps, user, app)

    assert reply.changed
    assert reply.diff.builds == []
    assert (await count_rows(deps))["jobs"] == jobs
    assert [field.path for field in reply.diff.parts[0].fields] == ["vars.title"]


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
    assert set((await count_rows(deps)).values()) == {0}
    assert await list_blobs(deps) == []


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


async def test_a_dry_run_tells_all_and_stores_nothing(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    await make_app(deps, user)
    first = await sync(deps, user, write_app(tmp_path), dry_run=True)
    assert (first.config, first.changed, first.workflow_id) == (None, True, None)
    assert (first.diff.before, first.diff.after) == (None, None)
    assert set((await count_rows(deps)).values()) == {0}
    stored_reply = await sync(deps, user, write_app(tmp_path))
    before = await count_rows(deps)
    text = '#!/bin/sh\necho "new"\n'
    component = 'name = "more"\ntype = "terraform_module"\n[public_repo]\nrepo = "."\ndirectory = "modules/page"\n'
    app = write_app(tmp_path, changes={"actions/greet.sh": text, "components/more.toml": component})

    reply = await sync(deps, user, app, dry_run=True)

    assert await count_rows(deps) == before
    assert len(await list_blobs(deps)) == 1
    assert reply.config == stored_reply.config
    assert (reply.diff.before, reply.diff.after, reply.dry_run) == (1, None, True)
    assert [(part.name, part.change) for part in reply.diff.parts] == [
        ("more", "added"), ("greet", "changed"),
    ]  # fmt: skip
    assert reply.diff.builds == []  # the same folder was built for `page`
    field = reply.diff.parts[1].fields[0]
    assert field.path == "steps[greet].inline_contents"
    assert '+echo "new"' in field.diff.splitlines()


async def test_installs_that_would_see_a_change_are_named(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    app_id = await make_app(deps, user)
    app = write_app(tmp_path)
    first = await sync(deps, user, app)
    assert first.config is not None
    config = first.config.id
    await deps.db.write(lambda tx: add_install(tx, user, app_id, config, "prod"))
    (app / "inputs.toml").write_text((app / "inputs.toml").read_text().replace('"world"', '"moon"'))

    reply = await sync(deps, user, app, dry_run=True)

    assert [(each.name, each.version, each.parts) for each in reply.diff.installs] == [
        ("prod", 1, ["input:who"])
    ]
    assert (await apps.show_app(deps, user, "demo")).installs == 1


def add_install(tx: Tx, user: User, app: str, config: str, name: str) -> None:
    from exclave.storage import installs, queues  # noqa: PLC0415 - only here

    install = f"ins_{name:0>26}"
    queues.add_queue(tx, user.org, QueueId(install), QueueKind.INSTALL)
    installs.add_install(tx, user.org, install, name, {})
    installs.add_app_install(tx, user.org, install, {
        "app_id": app, "config_id": config, "target": "local", "state": "new",
        "approve_all": False, "here": False, "managed_by": "", "state_version": 1,
        "input_version": 1,
    })  # fmt: skip


async def test_versions_are_listed_and_compared(deps: Deps, user: User, tmp_path: Path) -> None:
    await make_app(deps, user)
    for who in ("moon", "sun", "sea"):
        app = write_app(tmp_path)
        inputs = (app / "inputs.toml").read_text().replace('"world"', f'"{who}"')
        (app / "inputs.toml").write_text(inputs)
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
    made = []
    for number in range(4):
        app = write_app(tmp_path / str(number))
        inputs = (app / "inputs.toml").read_text().replace('"world"', f'"n{number}"')
        (app / "inputs.toml").write_text(inputs)
        made.append(app)

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
    assert (await count_rows(deps))["configs"] == 1


def make_hostile(kind: str) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("metadata.toml")
        match kind:
            case "climbs":
                info = tarfile.TarInfo("../../evil")
            case "absolute":
                info = tarfile.TarInfo("/tmp/evil")  # noqa: S108 - it is never written
            case "link":
                info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            case "hard":
                info.type, info.linkname = tarfile.LNKTYPE, "../x"
            case "device":
                info.type = tarfile.CHRTYPE
            case "twice":
                tar.addfile(tarfile.TarInfo("metadata.toml"))
            case _:
                info.size = 1 << 40
                out.write(info.tobuf())
                return out.getvalue()
        tar.addfile(info)
    return out.getvalue()


HOSTILE = ["climbs", "absolute", "link", "hard", "device", "twice", "bomb"]


@pytest.mark.parametrize("kind", [*HOSTILE, "noise", "empty", "cut"])
async def test_hostile_archives_are_refused_and_leave_nothing(
    deps: Deps, user: User, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    await make_app(deps, user)
    if kind == "cut":
        data = pack(write_app(tmp_path))[:9000]
        shutil.rmtree(tmp_path / "demo")
    else:
        data = {"noise": b"\x1f\x8b" + bytes(range(256)) * 9, "empty": b""}.get(kind, b"")
        data = data or (b"" if kind == "empty" else make_hostile(kind))

    with pytest.raises(ArchiveProblem):
        await sync_app(deps, user, "demo", in_pieces(data), SyncWish())

    assert set((await count_rows(deps)).values()) == {0}
    assert await list_blobs(deps) == []
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - a coroutine has no Path


async def test_an_upload_that_breaks_off_leaves_nothing(
    deps: Deps, user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    await make_app(deps, user)

    async def break_off() -> Any:
        yield b"x" * 4096
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await sync_app(deps, user, "demo", break_off(), SyncWish())

    assert os.listdir(tmp_path) == []  # noqa: PTH208 - a coroutine has no Path


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

    reply = await sync(deps, somebody, write_app(tmp_path))

    assert reply.changed
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


async def test_two_apps_cannot_have_the_same_name(deps: Deps, user: User) -> None:
    await make_app(deps, user)

    with pytest.raises(Conflict):
        await make_app(deps, user)
    await make_app(deps, await make_org(deps, "other"))


async def test_build_runners_of_the_org_get_the_archive_as_it_was_uploaded(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    await make_app(deps, user)
    directory = write_app(tmp_path)
    reply = await sync(deps, user, directory)
    assert reply.config is not None
    config = reply.config.id
    other = await make_org(deps, "other")

    def who(org: Any, kind: QueueKind) -> RunnerIdentity:
        return RunnerIdentity(org, RunnerId("run_x"), QueueId("bld_x"), kind, "x")

    digest, pieces = await configs.open_archive(deps, who(user.org, QueueKind.BUILD), config)
    assert b"".join([piece async for piece in pieces]) == pack(directory)
    assert digest == reply.config.archive_digest
    for stranger in (who(user.org, QueueKind.INSTALL), who(other.org, QueueKind.BUILD)):
        with pytest.raises(NotFound):
            await configs.open_archive(deps, stranger, config)


async def test_everything_of_the_largest_fixture_app_is_stored(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    fixture = Path(__file__).parents[2] / "fixtures/apps/acme-aws"
    app = tmp_path / "acme-aws"
    shutil.copytree(fixture, app, symlinks=True)
    await make_app(deps, user, "acme-aws")

    reply = await sync(deps, user, app)

    assert reply.config is not None
    config = reply.config.id
    rows = await deps.db.read(lambda tx: stored.list_all_parts(tx, user.org, config))
    assert {row.section for row in rows} >= {
        "component", "action", "runbook", "policy", "permission", "break_glass", "secret",
        "input", "stack", "role_rule", "named_policy", "kubernetes_context", "trigger", "branch",
        "installs_source",
    }  # fmt: skip
    assert not [row for row in rows if row.section == "install"]
    entries = [each for each in read_app(app).app.entries if each.section != "installs"]
    assert [thaw(type(each.value), row.value) for each, row in zip(entries, rows, strict=True)] == [
        each.value for each in entries
    ]


async def test_the_right_to_see_is_enough_to_look(deps: Deps, user: User, tmp_path: Path) -> None:
    await make_app(deps, user)
    await sync(deps, user, write_app(tmp_path))
    viewer = as_user(user, Role.VIEWER)

    assert (await apps.show_app(deps, viewer, "demo")).config is not None
    with pytest.raises(Forbidden):
        await sync(deps, viewer, write_app(tmp_path), dry_run=True)


async def test_a_build_that_failed_is_tried_again_by_the_next_sync(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    await make_app(deps, user)
    first = await sync(deps, user, write_app(tmp_path))
    builds = metadata.tables["builds"]
    failed = update(builds).where(builds.c.part == "sandbox").values(state="failed")
    await deps.db.write(lambda tx: tx.run(failed) and None)

    tried = await sync(deps, user, write_app(tmp_path), dry_run=True)
    again = await sync(deps, user, write_app(tmp_path))
    last = await sync(deps, user, write_app(tmp_path))

    assert (again.changed, again.config) == (False, first.config)
    assert tried.diff.builds == again.diff.builds == ["sandbox"]
    assert (tried.workflow_id, again.workflow_id == first.workflow_id) == (None, False)
    assert last.diff.builds == []


@pytest.mark.parametrize("name", ["a-", "a_-b", "-a", "A", "a.b", "", "a" * 64, "a___b", "../x"])
def test_a_name_that_no_repository_can_have_is_refused(name: str) -> None:
    with pytest.raises(ValidationError):
        NewApp(name=name)


@pytest.mark.parametrize("name", ["a", "a-b", "a--b", "a_b", "a__b", "0", "a" * 63])
def test_other_names_are_fine(name: str) -> None:
    assert NewApp(name=name).name == name
