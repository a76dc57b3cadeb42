"""A real buildah for tests: the installed one, or the packages of Debian, unpacked in the cache."""

import shutil
import subprocess
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
_LIBRARIES = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu")


def need_buildah() -> Path:
    """Return the path of buildah; a test that cannot have it is skipped by name, or fails in CI."""
    if found := shutil.which("buildah"):
        return Path(found)
    folder = FOLDER / "buildah-debian"
    program = folder / "bin" / "buildah"
    if not program.exists() and (problem := _unpack(folder, program)):
        give_up(f"buildah is not there and could not be unpacked: {problem}")
    return program


def _unpack(folder: Path, program: Path) -> str:
    """Fetch the packages without installing them; return what went wrong, or nothing."""
    apt, dpkg = shutil.which("apt-get"), shutil.which("dpkg-deb")
    if apt is None or dpkg is None:
        return "this is no Debian: install the package of your system"
    with locked(folder):
        if program.exists():
            return ""
        fetched = subprocess.run(
            [apt, "download", "-q", *PACKAGES],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if fetched.returncode:
            return f"`apt-get download` failed: {fetched.stderr.strip()[-300:]}"
        root = folder / "root"
        for package in sorted(folder.glob("*.deb")):
            subprocess.run([dpkg, "-x", package, root], check=True)
            package.unlink()
        program.parent.mkdir(exist_ok=True)
        paths = ":".join(str(root / part) for part in _LIBRARIES)
        script = f'#!/bin/sh\nLD_LIBRARY_PATH="{paths}" exec "{root}/usr/bin/buildah" "$@"\n'
        program.write_text(script)
        program.chmod(0o755)
    return ""
