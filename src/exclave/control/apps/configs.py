"""Config versions: list, compare, and hand out their archives."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from exclave.appconfig.stored.parts import FrozenApp
from exclave.base.digests import canonical_json
from exclave.base.errors import NotFound
from exclave.control.apps.affected_installs import find_impact
from exclave.control.apps.apps import find_app, show_config
from exclave.control.apps.config_diff import NOTHING, ConfigDiff, Folders, diff_lines, diff_parts
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.limits import quotas
from exclave.control.pagination import clamp, make_page
from exclave.control.workers.pool import TookTooLong, TookTooMuch, WorkerDied
from exclave.domain.apps import App
from exclave.domain.configs import Config, NewConfig
from exclave.domain.four_eyes import Author
from exclave.domain.identity import OrgId, QueueKind, Right, RunnerIdentity, User
from exclave.domain.quotas import Stored
from exclave.storage import apps, configs
from exclave.storage.engine.database import Tx
from exclave.wire.apps import ConfigDiffReply, ConfigFieldChange, ConfigPartChange, ConfigReply
from exclave.wire.model import Page

_DIFF_S = 2.0


@dataclass(frozen=True, slots=True)
class CheckedUpload:
    """An app that was checked, and where the archive of its directory lies."""

    app: FrozenApp
    archive: str
    archive_digest: str
    archive_size: int


async def list_configs(
    deps: Deps, user: User, app: str, cursor: str, limit: int
) -> Page[ConfigReply]:
    """List the versions of an app, newest first."""
    wanted = clamp(limit)

    def read(tx: Tx) -> Page[ConfigReply]:
        app_row = find_app(tx, user, app, Right.READ)
        last = configs.find_config(tx, user.org, cursor) if cursor else None
        before = None if last is None else last.version
        rows = configs.list_configs(tx, user.org, app_row.id, before, wanted + 1)
        return make_page(
            rows, wanted, lambda row: show_config(row, current=row.id == app_row.config_id)
        )

    return await deps.db.read(read)


async def compare_configs(
    deps: Deps, user: User, app: str, before: int, after: int
) -> ConfigDiffReply:
    """Return the differences between two versions of an app, and the installs they affect."""

    def compare(tx: Tx) -> ConfigDiffReply:
        app_row = find_app(tx, user, app, Right.READ)
        old, new = (_find_version(tx, user.org, app_row, version) for version in (before, after))
        diff = diff_configs(tx, user.org, old.id, new.id)
        parts = configs.list_all_parts(tx, user.org, new.id)
        impact = find_impact(tx, user.org, app_row.id, parts)
        return ConfigDiffReply(
            app=app_row.name,
            before=before,
            after=after,
            parts=show_parts(diff),
            builds=[],
            installs=impact.installs,
            more_installs=impact.more,
        )

    return await add_line_diffs(deps, user.org, await deps.db.read(compare))


def store_config(tx: Tx, deps: Deps, user: User, app: App, new: CheckedUpload) -> Config:
    """Store the next version of a locked app, and make it the current one."""
    config_id = deps.ids.new("cfg")
    version = configs.read_last_version(tx, user.org, app.id) + 1
    configs.add_config(
        tx,
        user.org,
        NewConfig(
            id=config_id,
            app_id=app.id,
            version=version,
            digest=new.app.digest,
            archive=new.archive,
            archive_digest=new.archive_digest,
            outline=new.app.outline,
            author=Author.of(user),
        ),
    )
    configs.add_parts(tx, user.org, config_id, new.app.parts)
    quotas.reserve(tx, deps, user.org, Stored.CONFIGS, new.archive_size + _measure(new.app), 1)
    apps.set_config(tx, user.org, app.id, config_id)
    record(
        tx, deps, user.org, user.name, "app_synced", app.id, config=config_id, version=str(version)
    )
    config = configs.find_config(tx, user.org, config_id)
    assert config is not None  # noqa: S101 - it was just stored
    return config


def _measure(app: FrozenApp) -> int:
    """Return how many bytes the parts of an app have as they are stored."""
    return sum(len(canonical_json(dict(part.value))) for part in app.parts)


def diff_configs(tx: Tx, org: OrgId, before: str, after: str) -> ConfigDiff:
    """Compare two versions, part by part."""
    return diff_parts(
        configs.list_all_parts(tx, org, before),
        configs.list_all_parts(tx, org, after),
        _list_folders(tx, org, before),
        _list_folders(tx, org, after),
    )


def _list_folders(tx: Tx, org: OrgId, config: str) -> Folders:
    row = configs.find_config(tx, org, config)
    return NOTHING if row is None else row.outline.get("folders", NOTHING)


async def add_line_diffs(deps: Deps, org: OrgId, reply: ConfigDiffReply) -> ConfigDiffReply:
    """Add line diffs to changed texts, as far as the time limit allows."""
    fields = [
        field
        for part in reply.parts
        for field in part.fields
        if "\n" in (field.before or "") or "\n" in (field.after or "")
    ]
    if not fields:
        return reply
    texts = [(field.before or "", field.after or "") for field in fields]
    try:
        diffs = await deps.workers.run(org, diff_lines, texts, seconds=_DIFF_S)
    except (TookTooLong, TookTooMuch, WorkerDied):
        return reply  # both texts are there
    diffs_by_field = {id(field): diff for field, diff in zip(fields, diffs, strict=True)}
    parts = [
        part.model_copy(
            update={
                "fields": [
                    field.model_copy(update={"diff": diffs_by_field.get(id(field), "")})
                    for field in part.fields
                ]
            }
        )
        for part in reply.parts
    ]
    return reply.model_copy(update={"parts": parts})


def show_parts(diff: ConfigDiff) -> list[ConfigPartChange]:
    """Show what differs."""
    return [
        ConfigPartChange(
            section=part.section,
            name=part.name,
            change=part.change,
            fields=[
                ConfigFieldChange(path=field.path, before=field.before, after=field.after, diff="")
                for field in part.fields
            ],
        )
        for part in diff.parts
    ]


async def open_archive(
    deps: Deps, who: RunnerIdentity, config_id: str
) -> tuple[str, AsyncIterator[bytes]]:
    """Open the uploaded directory of a version, for build runners; answer its digest and bytes."""
    row = await deps.db.read(lambda tx: configs.find_config(tx, who.org, config_id))
    if row is None or who.kind is not QueueKind.BUILD:
        raise NotFound("there is no such config")
    return row.archive_digest, deps.blobs.read(row.archive)


def _find_version(tx: Tx, org: OrgId, app: App, version: int) -> Config:
    row = configs.find_version(tx, org, app.id, version)
    if row is None:
        raise NotFound(
            f"the app `{app.name}` has no version {version}",
            hint=f"`exclave apps configs {app.name}` lists them.",
        )
    return row
