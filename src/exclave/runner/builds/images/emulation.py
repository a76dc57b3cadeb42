"""Which platforms the programs of an image can be run for on this machine."""

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

_MACHINES: Final[Mapping[str, str]] = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm"}
_EMULATORS: Final[Mapping[str, str]] = {"amd64": "x86_64", "arm64": "aarch64", "386": "i386"}
"""Architectures that an emulator has another name for."""
_REGISTERED: Final = Path("/proc/sys/fs/binfmt_misc")


def list_foreign(platforms: Sequence[str]) -> list[str]:
    """Return the platforms that this machine neither is nor emulates."""
    machine = _MACHINES.get(platform.machine(), platform.machine())
    return [name for name in platforms if not _can_run(name.split("/")[1], machine)]


def _can_run(architecture: str, machine: str) -> bool:
    emulator = _REGISTERED / f"qemu-{_EMULATORS.get(architecture, architecture)}"
    return architecture == machine or emulator.exists()
