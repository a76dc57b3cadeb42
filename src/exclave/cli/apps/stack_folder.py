"""A folder that generated files are written into, and nothing else is lost in."""

import contextlib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from exclave.base.errors import Conflict, InvalidInput
from exclave.base.json_values import JsonObject, object_or_empty, parse_object

LIST: Final = ".exclave-stack.json"
"""The list of the files that were written, by which they are known the next time."""
_MOST_BYTES: Final = 1 << 20


def write_folder(folder: Path, files: Mapping[str, str], facts: JsonObject) -> tuple[str, ...]:
    """Write files, and remove those of the last time that are no more; return the removed ones.

    Nothing is written if a file in the way was not written here, or was changed since.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise InvalidInput(f"`{folder}` is not a folder", hint="Name a new folder with --out.")
    before = _read_list(folder)
    foreign = [name for name in sorted({*files, *before}) if _is_foreign(folder, name, before)]
    if foreign:
        raise Conflict(
            f"`{folder}` has files that were not generated, or were changed: {_show(foreign)}",
            hint="Name a new folder with --out, or move these files away.",
        )
    gone = tuple(sorted(set(before) - set(files)))
    for name, text in files.items():
        _write(folder, name, text)
    for name in gone:
        _remove(folder, name)
    sums = {name: _hash(text.encode()) for name, text in sorted(files.items())}
    _write(folder, LIST, json.dumps({"format": 1, **facts, "files": sums}, indent=2) + "\n")
    return gone


def _read_list(folder: Path) -> Mapping[str, str]:
    """Return the hashes of the files that were written the last time, by name."""
    file = folder / LIST
    if not file.exists() and not file.is_symlink():
        return {}
    try:
        if file.is_symlink() or file.stat().st_size > _MOST_BYTES:
            raise ValueError  # noqa: TRY301 - one answer for all that is no list
        names = object_or_empty(parse_object(file.read_bytes(), LIST).get("files"))
    except (OSError, ValueError) as error:
        hint = "Remove it if it was not written by `exclave apps stack`."
        raise Conflict(f"`{file}` cannot be read", hint=hint) from error
    return {name: str(hashed) for name, hashed in names.items() if _is_inside(name)}


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(name) and not path.is_absolute() and ".." not in path.parts


def _is_foreign(folder: Path, name: str, before: Mapping[str, str]) -> bool:
    """Return whether there is something at a name that was not written here as it is now."""
    path = folder / name
    if any((folder / part).is_symlink() for part in (name, *map(str, PurePosixPath(name).parents))):
        return True
    if any((folder / part).is_file() for part in map(str, PurePosixPath(name).parents)):
        return True
    if not path.exists():
        return False
    return not path.is_file() or _hash(path.read_bytes()) != before.get(name)


def _write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.part")
        partial.unlink(missing_ok=True)
        partial.write_bytes(text.encode())
        partial.replace(path)
    except OSError as error:
        raise InvalidInput(f"cannot write `{path}`: {error.strerror}") from error


def _remove(folder: Path, name: str) -> None:
    """Remove a file, and the folders that are empty then."""
    (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        for parent in list(PurePosixPath(name).parents)[:-1]:
            (folder / parent).rmdir()


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _show(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
