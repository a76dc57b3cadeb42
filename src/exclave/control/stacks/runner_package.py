"""The runner program as the control plane hands it out: a wheel of this very package's files."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata, resources
from importlib.resources.abc import Traversable

from exclave import __version__
from exclave.control.stacks.wheel import build_wheel, name_wheel

_NAME = "exclave"
_ROOMS = ("appconfig", "base", "cli", "client", "domain", "main", "runner", "template", "wire")
"""What a runner needs: nothing of the control plane goes to customers."""
_LEFT_OUT = frozenset({"__pycache__"})


@dataclass(frozen=True, slots=True)
class RunnerPackage:
    """A file with its name and the hash that scripts pin."""

    file: str
    data: bytes
    sha256: str


@lru_cache(1)
def load_package() -> RunnerPackage:
    """Build the wheel, once per process: the files do not change under it."""
    root = resources.files(_NAME)
    files = {f"{_NAME}/{one.name}": one.read_bytes() for one in root.iterdir() if one.is_file()}
    for room in _ROOMS:
        files |= dict(_walk(root / room, f"{_NAME}/{room}"))
    about = metadata.metadata(_NAME)
    requires = [one for one in metadata.requires(_NAME) or [] if "extra ==" not in one]
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
    for one in folder.iterdir():
        if one.name in _LEFT_OUT:
            continue
        if one.is_dir():
            yield from _walk(one, f"{path}/{one.name}")
        else:
            yield f"{path}/{one.name}", one.read_bytes()
