"""Syncing on both databases: one transaction, or nothing."""

import shutil
from pathlib import Path

from sqlalchemy import update

from exclave.appconfig.read_app import read_app
from exclave.appconfig.stored.freezing import freeze, thaw
from exclave.control.apps import apps
from exclave.control.deps import Deps
from exclave.domain.identity import QueueId, QueueKind, User
from exclave.domain.installs import NewAppInstall
from exclave.domain.stacks import Cloud
from exclave.storage import app_installs, installs, queues
from exclave.storage import configs as stored
from exclave.storage.engine.database import Tx
from exclave.storage.tables import metadata
from tests.integration.control.syncing_kit import count_synced, list_archives
from tests.support.apps import edit, make_app, sync, write_app


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
        "name": "page",
        "type": "terraform_module",
        "needs": ["greeting"],
        "inputs": [],
        "hash": config.outline["components"][1]["hash"],
        "toggleable": False,
        "default_enabled": False,
    }
    assert config.outline["cloud"] == "local"
    assert sorted(config.outline["folders"]) == [
        "modules/greeting",
        "modules/page",
        "modules/sandbox",
    ]
    assert (await count_synced(deps))["jobs"] == 3


async def test_every_part_can_be_read_back(deps: Deps, user: User, tmp_path: Path) -> None:
    await make_app(deps, user)
    reply = await sync(deps, user, write_app(tmp_path))
    assert reply.config is not None
    config = reply.config.id

    rows = await deps.db.read(lambda tx: stored.list_all_parts(tx, user.org, config))

    assert [(row.section, row.name) for row in rows] == [
        ("metadata", ""),
        ("sandbox", ""),
        ("runner", ""),
        ("input_group", "greeting"),
        ("input", "who"),
        ("component", "greeting"),
        ("component", "page"),
        ("action", "greet"),
    ]
    readme = next(row for row in rows if row.section == "metadata").value["readme"]
    assert str(readme).startswith("# Demo")
    entries = read_app(tmp_path / "demo").app.entries
    assert [row.value for row in rows] == [freeze(entry.value) for entry in entries]


async def test_everything_of_the_largest_fixture_app_is_stored(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    fixture = Path(__file__).parents[3] / "fixtures/apps/acme-aws"
    app = tmp_path / "acme-aws"
    shutil.copytree(fixture, app, symlinks=True)
    await make_app(deps, user, "acme-aws")

    reply = await sync(deps, user, app)

    assert reply.config is not None
    config = reply.config.id
    rows = await deps.db.read(lambda tx: stored.list_all_parts(tx, user.org, config))
    assert {row.section for row in rows} >= {
        "component",
        "action",
        "runbook",
        "policy",
        "permission",
        "break_glass",
        "secret",
        "input",
        "stack",
        "role_rule",
        "named_policy",
        "kubernetes_context",
        "trigger",
        "branch",
        "installs_source",
    }
    assert not [row for row in rows if row.section == "install"]
    entries = [each for each in read_app(app).app.entries if each.section != "installs"]
    assert [thaw(type(each.value), row.value) for each, row in zip(entries, rows, strict=True)] == [
        each.value for each in entries
    ]


async def test_unchanged_content_makes_no_version_and_no_job(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    await make_app(deps, user)
    first = await sync(deps, user, write_app(tmp_path))
    before = await count_synced(deps)
    app = write_app(tmp_path / "elsewhere", "demo", {"NOTES.txt": "nothing that the app reads"})
    edit(app, "components/page.toml", "name =", "# another comment\nname =")

    again = await sync(deps, user, app)

    assert (again.changed, again.config, again.diff.parts) == (False, first.config, [])
    assert await count_synced(deps) == before
    assert len(await list_archives(deps)) == 1


async def test_a_change_builds_what_it_touches_and_nothing_else(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    await make_app(deps, user)
    app = write_app(tmp_path)
    await sync(deps, user, app)
    edit(app, "modules/page/main.tf", "h1", "h2")

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
    jobs = (await count_synced(deps))["jobs"]
    edit(app, "components/page.toml", "text }}", "text }}!")

    reply = await sync(deps, user, app)

    assert reply.changed
    assert reply.diff.builds == []
    assert (await count_synced(deps))["jobs"] == jobs
    assert [field.path for field in reply.diff.parts[0].fields] == ["vars.title"]


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


async def test_a_dry_run_tells_all_and_stores_nothing(
    deps: Deps, user: User, tmp_path: Path
) -> None:
    await make_app(deps, user)
    first = await sync(deps, user, write_app(tmp_path), dry_run=True)
    assert (first.config, first.changed, first.workflow_id) == (None, True, None)
    assert (first.diff.before, first.diff.after) == (None, None)
    assert set((await count_synced(deps)).values()) == {0}
    stored_reply = await sync(deps, user, write_app(tmp_path))
    before = await count_synced(deps)
    text = '#!/bin/sh\necho "new"\n'
    component = 'name = "more"\ntype = "terraform_module"\n[public_repo]\nrepo = "."\ndirectory = "modules/page"\n'
    app = write_app(tmp_path, changes={"actions/greet.sh": text, "components/more.toml": component})

    reply = await sync(deps, user, app, dry_run=True)

    assert await count_synced(deps) == before
    assert len(await list_archives(deps)) == 1
    assert reply.config == stored_reply.config
    assert (reply.diff.before, reply.diff.after, reply.dry_run) == (1, None, True)
    assert [(part.name, part.change) for part in reply.diff.parts] == [
        ("more", "added"),
        ("greet", "changed"),
    ]
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
    edit(app, "inputs.toml", '"world"', '"moon"')

    reply = await sync(deps, user, app, dry_run=True)

    assert [(each.name, each.version, each.parts) for each in reply.diff.installs] == [
        ("prod", 1, ["input:who"])
    ]
    assert (await apps.show_app(deps, user, "demo")).installs == 1


def add_install(tx: Tx, user: User, app: str, config: str, name: str) -> None:
    install = f"ins_{name:0>26}"
    queues.add_queue(tx, user.org, QueueId(install), QueueKind.INSTALL)
    installs.add_install(tx, user.org, install, name, {})
    new = NewAppInstall(app, config, user.person, Cloud.LOCAL)
    app_installs.add_app_install(tx, user.org, install, new)
