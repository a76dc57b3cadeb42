"""Tracked text names no package registry, no folder of a developer's machine."""

import re
import subprocess

from tests.unit.docs.pages import ROOT

# Written in pieces, so that this file does not find itself.
_HOSTS = ("py" + "pi.org", "python" + "hosted.org", "npm" + "js.org", "registry.yarn" + "pkg.com")
_FOLDERS = ("/wo" + "rk/", "/ro" + "ot/", "/ho" + "me/", "/Us" + "ers/")
_ABSOLUTE = "|".join(rf"(?<![\w.}}>…-]){re.escape(folder)}[a-z]" for folder in _FOLDERS)


def test_no_registry_host_and_no_private_folder_is_tracked() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    found = []
    for name in listed.stdout.decode().split("\0"):
        file = ROOT / name
        if name == "" or not file.is_file() or b"\0" in (data := file.read_bytes()):
            continue
        text = data.decode(errors="replace")
        found += [f"{name}: {host}" for host in _HOSTS if host in text]
        found += [f"{name}: {place}" for place in re.findall(_ABSOLUTE, text)]

    assert found == []
