"""The runner program that the control plane serves: a wheel built from its own files."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata, resources
from importlib.resources.abc import Traversable

from exclave import __version__
from exclave.control.stacks.wheel import build_wheel, name_wheel

_NAME = "exclave"
_ROOMS = (
    "appconfig",
    "base",
    "cli",
    "client",
    "domain",
    "jobspec",
    "main",
    "runner",
    "template",
    "wire",
)
"""The packages that a runner needs; no code of the control plane goes to customers."""
_LEFT_OUT = frozenset({"__pycache__"})


@dataclass(frozen=True, slots=True)
class RunnerPackage:
    """The wheel, with its file name and the hash that Stacks pin."""

    file: str
    data: bytes
    sha256: str


@lru_cache(1)
def load_package() -> RunnerPackage:
    """Return the wheel; it is built once per process, since the files do not change."""
    root = resources.files(_NAME)
    files = {f"{_NAME}/{file.name}": file.read_bytes() for file in root.iterdir() if file.is_file()}
    for room in _ROOMS:
        files |= dict(_walk(root / room, f"{_NAME}/{room}"))
    about = metadata.metadata(_NAME)
    requires = [line for line in metadata.requires(_NAME) or [] if "extra ==" not in line]
    data = build_wheel(
        _NAME,
        __version__,
        files,
        requires=sorted(requires),
        requires_python=about["Requires-Python"],
        scripts={_NAME: "exclave.main.entry:main"},
    )
    return RunnerPackage(name_wheel(_NAME, __version__), data, hashlib.sha256(data).hexdigest())


def _walk(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.name in _LEFT_OUT:
            continue
        if entry.is_dir():
            yield from _walk(entry, f"{path}/{entry.name}")
        else:
            yield f"{path}/{entry.name}", entry.read_bytes()
