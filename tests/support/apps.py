"""App directories for sync tests: written, packed and uploaded as the CLI does it."""

import io
import shutil
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from exclave.appconfig.starter import write_starter
from exclave.appconfig.stored.packing import pack_app
from exclave.control.apps import apps
from exclave.control.apps.sync import SyncWish, sync_app
from exclave.control.deps import Deps
from exclave.domain.identity import User
from exclave.wire.apps import NewApp, SyncReply


def write_app(folder: Path, name: str = "demo", changes: Mapping[str, str | None] = {}) -> Path:
    """Write the starter app with some files changed, or removed if the text is None."""
    app = folder / name
    shutil.rmtree(app, ignore_errors=True)
    write_starter(app)
    for path, text in changes.items():
        file = app / path
        if text is None:
            file.unlink()
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    return app


def edit(app: Path, path: str, old: str, new: str) -> Path:
    """Replace a text in a file of an app and return the app."""
    text = (app / path).read_text()
    assert old in text
    (app / path).write_text(text.replace(old, new))
    return app


def pack(directory: Path) -> bytes:
    """Return an app directory as an archive."""
    out = io.BytesIO()
    pack_app(directory, out)
    return out.getvalue()


async def in_chunks(data: bytes, size: int = 4096) -> AsyncIterator[bytes]:
    """Yield bytes in chunks, as a request body arrives."""
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def make_app(deps: Deps, user: User, name: str = "demo") -> str:
    """Create an app and return its id."""
    return (await apps.create_app(deps, user, NewApp(name=name))).id


async def sync(
    deps: Deps,
    user: User,
    directory: Path,
    *,
    app: str = "",
    strict: bool = False,
    dry_run: bool = False,
) -> SyncReply:
    """Upload a directory to the app of its name."""
    wish = SyncWish(strict=strict, dry_run=dry_run)
    return await sync_app(deps, user, app or directory.name, in_chunks(pack(directory)), wish)
