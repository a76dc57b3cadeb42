"""The files of a small Linux image, taken from this machine: a shell and a few programs.

Images for tests are built without a network, so that they begin `FROM scratch`.
"""

import re
import shutil
import subprocess
from pathlib import Path

PROGRAMS = ("sh", "cat", "id", "ls", "sleep", "mkdir", "chown", "tr")
_LIBRARY = re.compile(r"(/\S+) \(0x")
_PASSWD = "root:x:0:0::/:/bin/sh\napp:x:1000:1000::/:/bin/sh\n"


def copy_programs(folder: Path) -> None:
    """Copy the programs and the libraries that they need into a folder."""
    (folder / "bin").mkdir(parents=True)
    (folder / "etc").mkdir()
    (folder / "etc" / "passwd").write_text(_PASSWD)
    for name in PROGRAMS:
        found = shutil.which(name)
        assert found is not None, f"this machine has no `{name}`"
        _copy(Path(found).resolve(), folder / "bin" / name)
        listed = subprocess.run(["ldd", found], capture_output=True, text=True, check=False)
        for library in _LIBRARY.findall(listed.stdout):
            _copy(Path(library).resolve(), folder / library.lstrip("/"))


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)
