"""Archives of the runner program for machines in clouds: everything in it, nothing to install.

An archive holds the wheels of the runner's lock file, unpacked, our own packages, and a script
that starts them. A machine needs Python and no package index.
"""

import gzip
import hashlib
import io
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import ClassVar, Final, Literal

from exclave import __version__
from exclave.base.errors import Kind, Problem
from exclave.control.stacks.runner_package import load_package
from exclave.runner.data_folder import write_durably

Machine = Literal["x86_64", "aarch64"]
MACHINES: Final[Sequence[Machine]] = ("x86_64", "aarch64")
USUAL_PYTHON: Final = "3.12"
"""The one of Ubuntu 24.04, which the machines of Stacks run."""

_LAUNCH: Final = b'''"""Starts the Exclave runner program in this folder."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "site"))

from exclave.main.entry import main

main()
'''
_GLIBC: Final = (17, 24, 27, 28, 31, 34)
"""Versions of glibc that wheels are built for, up to that of the machines."""
_DATA: Final = re.compile(r"^[^/]+\.data/(?:purelib|platlib)/")
_LEFT_OUT: Final = re.compile(r"(^|/)tests/|\.data/|(^|/)__pycache__/")
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_LEVEL: Final = 6
_WITHIN_S: Final = 900


class BundleFailed(Problem):
    """The archive of the runner program could not be made."""

    kind: ClassVar = Kind.INVALID
    code: ClassVar = "bundle_failed"
    hint: ClassVar = "Give a folder with the wheels of `runner.lock` by --wheels, or try again."


@dataclass(frozen=True, slots=True)
class Bundle:
    """An archive that was written."""

    path: Path
    machine: Machine
    sha256: str
    size: int
    files: int


def write_bundle(out: Path, machine: Machine, wheels: Path, python: str = USUAL_PYTHON) -> Bundle:
    """Write the archive for a machine from the wheels in a folder; the same wheels, the same bytes.

    With another Python than the usual one, the name of the archive says so.
    """
    files = collect_files(read_wheels(wheels, read_hashes()))
    data = pack(files)
    suffix = "" if python == USUAL_PYTHON else f"-cp{python.replace('.', '')}"
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"runner-{__version__}-{machine}{suffix}.tar.gz"
    write_durably(path, data)
    path.chmod(0o644)
    return Bundle(path, machine, hashlib.sha256(data).hexdigest(), len(data), len(files))


def download_wheels(folder: Path, machine: Machine, python: str = USUAL_PYTHON) -> None:
    """Download the wheels of the runner's lock file for a machine, by their hashes."""
    with resources.as_file(_find_lock()) as lock:
        platforms = [f"--platform=manylinux_2_{minor}_{machine}" for minor in _GLIBC]
        argv = [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
            *("--only-binary=:all:", "--require-hashes", "--no-deps", "--dest", str(folder)),
            *platforms,
            *(f"--platform=manylinux2014_{machine}", f"--python-version={python}"),
            *("--implementation=cp", f"--abi=cp{python.replace('.', '')}", "--abi=abi3"),
            *("--abi=none", "-r", str(lock)),
        ]
        done = subprocess.run(  # noqa: S603 - words, no shell
            argv, capture_output=True, text=True, check=False, timeout=_WITHIN_S
        )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()[-3:]
        raise BundleFailed(f"pip could not download the wheels: {' '.join(lines)}")


def read_hashes() -> frozenset[str]:
    """Return the hashes that the runner's lock file allows."""
    return frozenset(_HASH.findall(_find_lock().read_text()))


def read_wheels(folder: Path, allowed: frozenset[str]) -> Iterator[bytes]:
    """Yield the wheels in a folder; raise if one is not of the lock file."""
    files = sorted(folder.glob("*.whl"))
    if not files:
        raise BundleFailed(f"there are no wheels in `{folder}`")
    for path in files:
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() not in allowed:
            raise BundleFailed(f"`{path.name}` is not what the lock file of the runner names")
        yield data


def collect_files(wheels: Iterator[bytes]) -> Mapping[str, bytes]:
    """Return the files of an archive: those of the wheels and our own."""
    files = {"launch.py": _LAUNCH}
    for wheel in (*wheels, load_package().data):
        with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
            for name in archive.namelist():
                inside = _DATA.sub("", name)
                if not name.endswith("/") and not _LEFT_OUT.search(inside):
                    files[f"site/{inside}"] = archive.read(name)
    return files


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return an archive of regular files whose bytes follow from theirs."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o644
            archive.addfile(member, io.BytesIO(data))
    return gzip.compress(plain.getvalue(), _LEVEL, mtime=0)


def _find_lock() -> resources.abc.Traversable:
    return resources.files("exclave.runner") / "runner.lock"
