"""Copies of a control plane on SQLite and files: consistent, checked, restorable."""

import json
import shutil
import sqlite3
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

from exclave.base.errors import Conflict, InvalidInput
from exclave.storage.engine.private_files import create_private

DATABASE = "exclave.db"
BLOBS = "blobs"
SEAL = "seal.key"
MANIFEST = "manifest.json"


class BackupDamaged(InvalidInput):
    """A file of the backup is missing or differs from what was written."""

    code: ClassVar = "backup_damaged"
    hint: ClassVar = "Use another backup; nothing was restored."


def write_backup(data: Path, target: Path) -> int:
    """Copy a data folder, which may be in use, into an empty folder; return how many files.

    The database is copied first: whatever it refers to then exists already.
    """
    _require_empty(target)
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    _copy_database(data / DATABASE, target / DATABASE)
    _copy_file(data / SEAL, target / SEAL)
    for blob in _files(data / BLOBS):
        _copy_file(blob, target / BLOBS / blob.relative_to(data / BLOBS))
    digests = {str(file.relative_to(target)): _digest(file) for file in _files(target)}
    create_private(target / MANIFEST)
    (target / MANIFEST).write_text(json.dumps({"version": 1, "files": digests}, indent=1))
    return len(digests)


def read_backup(source: Path, data: Path) -> int:
    """Check a backup and copy it into an empty data folder; return how many files."""
    manifest = source / MANIFEST
    if not manifest.is_file():
        raise BackupDamaged(f"there is no {MANIFEST} in {source}")
    digests = json.loads(manifest.read_text())["files"]
    for name, digest in digests.items():
        file = source / name
        if not file.is_file() or _digest(file) != digest:
            raise BackupDamaged(f"{name} is missing or was changed")
    _require_empty(data)
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in digests:
        _copy_file(source / name, data / name)
    return len(digests)


def _require_empty(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Conflict(f"{folder} exists and is not empty", hint="Name a new folder.")


def _copy_file(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    create_private(target)
    shutil.copyfile(source, target)


def _copy_database(source: Path, target: Path) -> None:
    if not source.is_file():
        raise InvalidInput(f"there is no database at {source}")
    create_private(target)
    with sqlite3.connect(source) as live, sqlite3.connect(target) as copy:
        live.backup(copy)
    copy.close()
    live.close()


def _files(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from sorted(path for path in folder.rglob("*") if path.is_file())


def _digest(file: Path) -> str:
    digest = sha256()
    with file.open("rb") as opened:
        while chunk := opened.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
