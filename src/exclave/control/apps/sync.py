"""Syncing: an uploaded app directory becomes the next config version, or nothing at all."""

import asyncio
import hashlib
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from exclave.base.errors import Conflict, Kind, NotFound, Problem
from exclave.control.apps.apps import find_app
from exclave.control.apps.configs import CheckedUpload, add_line_diffs, store_config
from exclave.control.apps.sync_reply import show_findings, show_stored, show_tried, show_unchanged
from exclave.control.apps.unapproved_content import list_unasked, require_unasked
from exclave.control.builds import builds
from exclave.control.deps import Deps
from exclave.control.workers.read_app import SECONDS, Checked, check_upload
from exclave.domain.apps import App
from exclave.domain.identity import Right, User
from exclave.storage import apps, configs
from exclave.storage.engine.database import Tx
from exclave.wire.apps import AppFinding, SyncReply

_ATTEMPTS = 5
_CHUNK = 1 << 20


class AppInvalid(Problem):
    """The directory has errors; nothing was stored."""

    code = "app_invalid"
    hint = "Repair what `diagnostics` names; nothing was stored."


class _Moved(Conflict):
    """Another sync stored a version in the meantime."""

    hint = "Others sync this app at the same time; try again."


class _Tried(Problem):
    """Carries the answer of a dry run out of the transaction that it undoes."""

    def __init__(self, reply: SyncReply) -> None:
        super().__init__("a dry run stores nothing")
        self.reply = reply


@dataclass(frozen=True, slots=True)
class SyncWish:
    """How to sync."""

    strict: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class _Known:
    """The app as it was when the directory was checked against it."""

    id: str
    name: str
    config_id: str | None
    digest: str
    types: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Upload:
    """An archive that was received, and where it is unpacked."""

    archive: Path
    digest: str
    directory: Path


async def sync_app(
    deps: Deps, user: User, app: str, chunks: AsyncIterable[bytes], options: SyncWish
) -> SyncReply:
    """Check an archive of an app directory, store a config version, and start its builds.

    The content decides: what is the same as in the current version makes no version and no job.
    """
    known = await deps.db.read(lambda tx: _look(tx, user, app))
    folder = await asyncio.to_thread(deps.sync_folders.make)
    try:
        upload = await _receive(chunks, folder.path, known.name)
        for _ in range(_ATTEMPTS):
            try:
                return await _process_upload(deps, user, known, upload, options)
            except _Moved:
                known = await deps.db.read(lambda tx: _look(tx, user, app))
        raise _Moved(f"the app `{known.name}` changes all the time")
    finally:
        await asyncio.to_thread(folder.remove)


async def _receive(chunks: AsyncIterable[bytes], folder: Path, name: str) -> _Upload:
    archive, directory = folder / "app.tar", folder / "app" / name
    hashed = hashlib.sha256()
    with archive.open("wb") as file:
        async for chunk in chunks:
            hashed.update(chunk)
            await asyncio.to_thread(file.write, chunk)
    return _Upload(archive, f"sha256:{hashed.hexdigest()}", directory)


async def _process_upload(
    deps: Deps, user: User, known: _Known, upload: _Upload, options: SyncWish
) -> SyncReply:
    checked = await deps.workers.run(
        user.org,
        check_upload,
        str(upload.archive),
        str(upload.directory),
        options.strict,
        dict(known.types),
        seconds=SECONDS,
    )
    findings = show_findings(checked.findings)
    if checked.app is None:
        raise _refuse(known, findings, checked)
    frozen = checked.app
    blob = f"configs/{user.org}/{deps.ids.new('arc')}.tar"
    if frozen.digest != known.digest and not options.dry_run:
        # First the bytes, then the row that names them.
        await deps.blobs.put_stream(blob, _read_file(upload.archive))
    new = CheckedUpload(frozen, blob, upload.digest, upload.archive.stat().st_size)
    try:
        reply = await deps.db.write(
            lambda tx: _store(tx, deps, user, known, new, options), key=known.id
        )
    except _Tried as tried:
        reply = tried.reply
    except Problem as problem:
        if problem.kind is not Kind.UNAVAILABLE:  # then it may have been stored
            await deps.blobs.delete(blob)
        raise
    diff = await add_line_diffs(deps, user.org, reply.diff)
    return reply.model_copy(update={"findings": findings, "diff": diff})


def _store(
    tx: Tx, deps: Deps, user: User, known: _Known, new: CheckedUpload, options: SyncWish
) -> SyncReply:
    app = _lock(tx, user, known)
    before = configs.find_config(tx, user.org, known.config_id) if known.config_id else None
    if before is not None and before.digest == new.app.digest:
        # What failed to build is tried again; what was built is left alone.
        made = builds.ensure_builds(tx, deps, user.org, user.name, before.id)
        reply = show_unchanged(tx, user.org, app, before, made)
    else:
        if not options.dry_run:
            old = configs.list_all_parts(tx, user.org, before.id) if before else ()
            require_unasked(tx, user, list_unasked(old, new.app.parts), app=app.id)
        config = store_config(tx, deps, user, app, new)
        made = builds.ensure_builds(tx, deps, user.org, user.name, config.id)
        reply = show_stored(tx, user.org, app, config, new.app, made)
    if options.dry_run:
        raise _Tried(show_tried(reply, before))
    return reply


def _refuse(known: _Known, findings: Sequence[AppFinding], checked: Checked) -> AppInvalid:
    errors = checked.errors
    return AppInvalid(
        f"the app `{known.name}` has {errors} error{'' if errors == 1 else 's'}",
        diagnostics=[finding.model_dump() for finding in findings],
        components=checked.components,
    )


def _look(tx: Tx, user: User, app: str) -> _Known:
    row = find_app(tx, user, app, Right.OPERATE)
    config = configs.find_config(tx, user.org, row.config_id) if row.config_id else None
    if config is None:
        return _Known(row.id, row.name, None, "", {})
    types = {component["name"]: component["type"] for component in config.outline["components"]}
    return _Known(row.id, row.name, config.id, config.digest, types)


def _lock(tx: Tx, user: User, known: _Known) -> App:
    row = apps.lock_app(tx, user.org, known.id)
    if row is None:
        raise NotFound("there is no such app")
    if row.config_id != known.config_id:
        raise _Moved(f"the app `{known.name}` was synced meanwhile")
    return row


async def _read_file(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while chunk := await asyncio.to_thread(file.read, _CHUNK):
            yield chunk
