"""Checks of fetched source before it becomes an artifact; errors name file and line."""

import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from exclave.base.archives import LEFT_OUT
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

_TEXTS = (".tf", ".tf.json", ".tfvars", ".tfvars.json", ".hcl", ".tftest.hcl")
_LFS = b"version https://git-lfs.github.com/spec/"
_POINTER_BYTES = 1024
_OUTSIDE = re.compile(rb'^\s*source\s*=\s*"((?:\.\.?/)+[^"]*)"', re.MULTILINE)


def locate_folder(root: Path, directory: str) -> Path:
    """Return the folder that an app names; raise unless it is inside the source, links included."""
    name = posixpath.normpath(directory or ".")
    if name.startswith(("/", "..")) or "\0" in name:
        _refuse(f"`{directory}` is not a folder of the source: write it relative to its root")
    folder = root / name
    if not folder.resolve().is_relative_to(root.resolve()):
        _refuse(f"the folder `{name}` is a link that leads outside the source")
    if not folder.exists():
        _refuse(f"there is no folder `{name}` in the source{_suggest(root, name)}")
    if not folder.is_dir():
        _refuse(f"`{name}` is a file and not a folder")
    return folder


def check_module(folder: Path) -> int:
    """Raise if Terraform cannot read the folder; return the number of files."""
    if not any(path.is_file() for glob in ("*.tf", "*.tf.json") for path in folder.glob(glob)):
        _refuse("there is no Terraform module in the folder: it has no `*.tf` file")
    files = check_files(folder)
    for path in _walk(folder):
        if path.name.endswith(_TEXTS):
            _check_text(path, path.relative_to(folder).as_posix())
    return files


def check_files(folder: Path) -> int:
    """Raise if the folder is empty or has Git LFS pointers; return the number of files."""
    count = 0
    for path in _walk(folder):
        count += 1
        if _is_pointer(path):
            name = path.relative_to(folder).as_posix()
            _refuse(f"{name}:1: the content is in Git LFS, which builds do not fetch")
    if count == 0:
        _refuse("the folder is empty")
    return count


def _is_pointer(path: Path) -> bool:
    if path.is_symlink() or not path.is_file() or path.stat().st_size >= _POINTER_BYTES:
        return False
    return path.read_bytes().startswith(_LFS)


def _check_text(path: Path, name: str) -> None:
    if path.is_symlink() or not path.is_file():
        return
    data = path.read_bytes()
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        _refuse(f"{name}:{line}: byte {data[error.start]:#04x} is not valid UTF-8")
    if "\0" in text:
        _refuse(
            f"{name}:{text.count(chr(10), 0, text.index(chr(0))) + 1}: there is a NUL character"
        )
    if name.endswith(".json"):
        _check_json(text, name)
    elif name.endswith(".tf"):
        _check_modules(data, name)


def _check_json(text: str, name: str) -> None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        _refuse(f"{name}:{error.lineno}: not JSON: {error.msg}")
    except (ValueError, RecursionError):
        _refuse(f"{name}:1: not JSON")


def _check_modules(data: bytes, name: str) -> None:
    """Raise if a module lies outside the folder: only the folder itself is packed."""
    for match in _OUTSIDE.finditer(data):
        source = match[1].decode()
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), source))
        if target.startswith(".."):
            line = data.count(b"\n", 0, match.start(1)) + 1
            _refuse(
                f'{name}:{line}: the module "{source}" lies outside the folder, and only the'
                " folder is packed: name a folder above both, or move the module into it"
            )


def _walk(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in LEFT_OUT:
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)
        else:
            yield path


def _suggest(root: Path, name: str) -> str:
    """Return a hint with the names at the deepest level of the path that exists."""
    parent = root / posixpath.dirname(name)
    if not parent.is_dir():
        return ""
    here = sorted(p.name for p in parent.iterdir() if p.is_dir() and p.name not in LEFT_OUT)
    return f"; there are {', '.join(f'`{folder}`' for folder in here[:8])}" if here else ""


def _refuse(message: str) -> NoReturn:
    raise WorkFailed(Reason.SOURCE_INVALID, message)
