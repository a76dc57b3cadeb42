"""`exclave apps create|list|get|sync|configs|diff`: apps on the server."""

import tempfile
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from pathlib import Path

import click
from pydantic import BaseModel, ValidationError

from exclave.appconfig.stored.packing import INSTALLS, pack_app
from exclave.base.errors import InvalidInput
from exclave.cli.apps.diff import write_diff
from exclave.cli.apps.findings import write_blocks, write_report
from exclave.cli.deps import Session, verb
from exclave.cli.errors import FAILED
from exclave.cli.inputs import build
from exclave.cli.lookup import gather, page_options
from exclave.cli.output import show_time
from exclave.cli.terminal import clean, join
from exclave.cli.workflows.watch import watch_workflow
from exclave.client.problems import RemoteProblem
from exclave.wire.apps import AppFinding, AppReply, NewApp, SyncReply

group = click.Group("apps")
"""Collects the verbs; `exclave apps` lists them together with the offline ones."""

_INVALID = "app_invalid"


@verb(group, "create")
@click.argument("name")
async def create(session: Session, name: str) -> None:
    """Create an app on the server; `apps sync` uploads its first version."""
    app = await session.client.apps.create(build(NewApp, name=name))
    _show(session, app)
    if not session.out.json_mode:
        session.out.say(f"\nNext: exclave apps sync DIRECTORY --app {app.name}")


@verb(group, "list")
@page_options
async def list_apps(session: Session, limit: int, cursor: str | None) -> None:
    """List the apps on the server."""
    page = await gather(session, session.client.apps.list, limit, cursor)
    rows = [
        [app.id, app.name, _show_version(app), str(app.installs), show_time(_find_synced(app))]
        for app in page.items
    ]
    table = session.out.table(["ID", "NAME", "VERSION", "INSTALLS", "SYNCED"], rows)
    session.out.show(page, table)


@verb(group, "get")
@click.argument("app", metavar="NAME|ID")
async def get(session: Session, app: str) -> None:
    """Show an app and its current version."""
    _show(session, await session.client.apps.get(app))


@verb(group, "sync")
@click.argument("directory", type=click.Path(path_type=Path), default=".")
@click.option("--app", default="", help="Name of the app.  [default: name of the directory]")
@click.option("--dry-run", is_flag=True, help="Show what would change without storing anything.")
@click.option("--strict", is_flag=True, help="Treat unknown keys as errors.")
@click.option("--wait", is_flag=True, help="Wait for the builds to end and show their progress.")
async def sync(
    session: Session, directory: Path, app: str, *, dry_run: bool, strict: bool, wait: bool
) -> int | None:
    """Upload an app directory as the next version, unless nothing changed."""
    root = session.deps.cwd / directory
    name = app or root.resolve().name
    _print_installs(session, root)
    try:
        reply = await _upload(session, root, name, strict=strict, dry_run=dry_run)
    except RemoteProblem as problem:
        if problem.code != _INVALID:
            raise
        return _show_refusal(session, name, problem.facts)
    watched = reply.workflow_id if wait else None
    if watched and session.out.json_mode:
        session.out.stream({"event": "sync", "sync": reply}, "")
    else:
        _show_sync(session, reply)
    if reply.workflow_id and not (watched or session.out.json_mode):
        session.out.say(f"\nWatch the builds: exclave workflows watch {reply.workflow_id}")
    return await watch_workflow(session, watched) if watched else None


@verb(group, "configs")
@click.argument("app", metavar="NAME|ID")
@page_options
async def configs(session: Session, app: str, limit: int, cursor: str | None) -> None:
    """List the versions of an app, newest first."""
    fetch = partial(session.client.apps.list_configs, app)
    page = await gather(session, fetch, limit, cursor)
    rows = [
        [
            str(item.version),
            "current" if item.current else "",
            str(len(item.components)),
            show_time(item.created_at),
            item.created_by,
            item.digest[:19],
        ]
        for item in page.items
    ]
    heads = ["VERSION", "", "COMPONENTS", "SYNCED", "BY", "DIGEST"]
    session.out.show(page, session.out.table(heads, rows))


@verb(group, "diff")
@click.argument("app", metavar="NAME|ID")
@click.argument("before", type=click.IntRange(min=1))
@click.argument("after", type=click.IntRange(min=1))
async def diff(session: Session, app: str, before: int, after: int) -> None:
    """Show the differences between two versions of an app."""
    reply = await session.client.apps.compare(app, before, after)
    text = write_diff(reply, colour=session.out.colour)
    session.out.show(reply, text or f"Versions {before} and {after} have the same content.")


async def _upload(
    session: Session, root: Path, name: str, *, strict: bool, dry_run: bool
) -> SyncReply:
    with tempfile.TemporaryDirectory(prefix="exclave-upload-") as folder:
        archive = _pack(root, Path(folder, "app.tar"))
        return await session.client.apps.sync(name, archive, strict=strict, dry_run=dry_run)


def _pack(root: Path, archive: Path) -> Path:
    with archive.open("wb") as out:
        pack_app(root, out)
    return archive


def _print_installs(session: Session, root: Path) -> None:
    if not session.out.json_mode and (root / INSTALLS).is_dir():
        session.out.say(f"{INSTALLS}/ is not part of the app; `exclave installs sync` reads it.")


class _Refusal(BaseModel):
    """The facts with which the server refuses an app that has errors."""

    diagnostics: list[AppFinding]
    components: int


def _show_refusal(session: Session, name: str, facts: Mapping[str, object]) -> int:
    try:
        refusal = _Refusal.model_validate(facts)
    except ValidationError as error:
        raise InvalidInput(
            f"the app `{name}` has errors, but the server did not list them"
        ) from error
    entries = [(finding, finding.text) for finding in refusal.diagnostics]
    text = write_report(name, entries, refusal.components, colour=session.out.colour)
    session.out.show({"ok": False, "app": name, "diagnostics": refusal.diagnostics}, text)
    if not session.out.json_mode:
        session.out.say("Nothing was stored.")
    return FAILED


def _show_sync(session: Session, reply: SyncReply) -> None:
    colour = session.out.colour
    blocks = [write_blocks([(finding, finding.text) for finding in reply.findings], colour=colour)]
    blocks += [write_diff(reply.diff, colour=colour)]
    blocks += [clean(_summarise(reply))]
    session.out.show(reply, join(block for block in blocks if block))


def _summarise(reply: SyncReply) -> str:
    version = f"version {reply.config.version}" if reply.config else "no version"
    if not reply.changed:
        return f"{reply.app}: nothing changed, {version} stays current"
    if reply.dry_run:
        return f"{reply.app}: dry run, nothing was stored"
    return f"{reply.app}: {version} is stored"


def _show(session: Session, app: AppReply) -> None:
    config = app.config
    pairs = [
        ("name", app.name),
        ("id", app.id),
        ("version", _show_version(app)),
        ("cloud", config.cloud if config else ""),
        ("components", ", ".join(config.components) if config else ""),
        ("digest", config.digest if config else ""),
        ("synced", f"{show_time(config.created_at)} by {config.created_by}" if config else ""),
        ("installs", str(app.installs)),
        ("created", f"{show_time(app.created_at)} by {app.created_by}"),
    ]
    session.out.show(app, session.out.details(pairs))


def _show_version(app: AppReply) -> str:
    return str(app.config.version) if app.config else "never synced"


def _find_synced(app: AppReply) -> datetime | None:
    return app.config.created_at if app.config else None
