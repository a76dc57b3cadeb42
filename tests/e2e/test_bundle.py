"""The runner program as a machine in a cloud gets it: built from real wheels, run without any."""

import asyncio
import os
import platform
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from exclave import __version__
from exclave.main.bundle import Machine, download_wheels, read_hashes, read_wheels, write_bundle
from tests.support.tools import give_up

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def read_machine() -> Machine:
    match platform.machine():
        case "x86_64" | "aarch64" as machine:
            return machine
        case other:
            pytest.skip(f"there is no runner program for {other}")


def find_wheels(folder: Path, machine: Machine) -> Path:
    """Return a folder with the wheels of the lock file; EXCLAVE_TEST_WHEELS may have them."""
    given = os.environ.get("EXCLAVE_TEST_WHEELS")
    if given:
        return Path(given)
    try:
        download_wheels(folder, machine, PYTHON)
    except Exception as error:  # noqa: BLE001 - any failure means that there is no network
        give_up(f"the wheels of the runner could not be downloaded: {error}")
    return folder


async def run(folder: Path, *words: str) -> tuple[int, str]:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", str(folder / "launch.py"), *words),
        cwd="/",
        env={"HOME": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    output, _ = await child.communicate()
    return child.returncode or 0, output.decode()


async def test_the_archive_runs_on_a_machine_that_has_nothing_but_python(tmp_path: Path) -> None:
    machine = read_machine()
    wheels = await asyncio.to_thread(find_wheels, tmp_path / "wheels", machine)

    first = write_bundle(tmp_path / "out", machine, wheels, PYTHON)
    again = write_bundle(tmp_path / "again", machine, wheels, PYTHON)
    with tarfile.open(first.path) as archive:
        archive.extractall(tmp_path / "run", filter="data")
    version = await run(tmp_path / "run", "--version")
    listed = await run(tmp_path / "run", "runner", "--help")

    assert first.sha256 == again.sha256
    assert len(list(read_wheels(wheels, read_hashes()))) > 10
    assert version == (0, f"exclave {__version__}\n")
    assert listed[0] == 0
    assert first.size < 40 << 20
