"""helm and kubectl for tests: the programs inside a wheel from PyPI, kept in the user's cache.

The wheel holds programs for Linux on x86-64. Elsewhere, a runner's own way to get them is used.
"""

import hashlib
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from tests.support.tools import BUILD_S, FOLDER, give_up, locked, need_from_runner

LOCK = Path(__file__).parents[2] / "requirements" / "kubernetes-tools.lock"
"""The wheel: helm 4.3.1 and kubectl 1.37.1."""
LAYER = "package/lib/layer.zip"


def need_helm() -> Path:
    """Return the path of helm 4."""
    return _need("helm")


def need_kubectl() -> Path:
    """Return the path of kubectl."""
    return _need("kubectl")


def need_helm3() -> Path:
    """Return the path of helm 3, which comes with the development dependencies."""
    found = Path(sys.executable).with_name("helm")
    if not found.exists():
        give_up("helm 3 is not there: install the development dependencies (`make test` does)")
    return found


def _need(name: str) -> Path:
    if platform.machine() != "x86_64":
        return need_from_runner(name)
    folder = FOLDER / f"kubernetes-tools-{hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]}"
    program = folder / name
    with locked(folder):
        if not program.exists() and (problem := _unpack_wheel(folder)):
            give_up(f"{name} is not there and could not be installed: {problem}")
    return program


def _unpack_wheel(folder: Path) -> str:
    """Put the programs of the wheel into the folder; return what went wrong, or nothing."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        aside = Path(name)
        argv = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check"]
        argv += ["--no-deps", "--require-hashes", "-r", str(LOCK), "-d", name]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=BUILD_S, check=False)
        if done.returncode:
            return done.stderr.strip()[-500:]
        _extract(next(aside.glob("*.whl")), aside)
        for program in ("helm", "kubectl"):
            (aside / program).chmod(0o755)
            (aside / program).replace(folder / program)
    return ""


def _extract(wheel: Path, folder: Path) -> None:
    """Extract a package of Node.js from the wheel, an archive from that, the programs from that."""
    with zipfile.ZipFile(wheel) as outer:
        package = next(name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with outer.open(package) as file, tarfile.open(fileobj=file, mode="r|gz") as middle:
            for member in middle:
                if member.name == LAYER:
                    _copy(middle, member, folder / "layer.zip")
    with zipfile.ZipFile(folder / "layer.zip") as inner:
        for program in ("helm", "kubectl"):
            with (
                inner.open(f"{program}/{program}") as source,
                (folder / program).open("wb") as out,
            ):
                shutil.copyfileobj(source, out)


def _copy(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    source = archive.extractfile(member)
    assert source is not None
    with source, target.open("wb") as out:
        shutil.copyfileobj(source, out)
