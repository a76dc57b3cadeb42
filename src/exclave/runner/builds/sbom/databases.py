"""Readers of what package managers write about installed packages.

They read files of tenants: whatever is not understood is left out, and never an error.
"""

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from email.parser import HeaderParser
from typing import Final

from exclave.base.json_values import JsonObject, object_or_empty, text_or_empty
from exclave.runner.builds.sbom.packages import Package
from exclave.runner.builds.sbom.rpm import read_rpm

_MOST_TEXT: Final = 300
_WANTED: Final = re.compile(
    r"(?P<dpkg>var/lib/dpkg/(status|status\.d/(?!.*\.md5sums$)[^/]+))"
    r"|(?P<apk>(usr/)?lib/apk/db/installed)"
    r"|(?P<rpm>(var/lib|usr/lib/sysimage|usr/share)/rpm/rpmdb\.sqlite)"
    r"|(?P<old_rpm>(var/lib|usr/lib/sysimage)/rpm/Packages(\.db)?)"
    r"|(?P<pypi>(.*/)?[^/]+\.(dist-info/METADATA|egg-info/PKG-INFO))"
    r"|(?P<npm>(.*/)?node_modules/(@[^/]+/)?[^/@]+/package\.json)"
    r"|(?P<release>(usr/lib|etc)/os-release)"
)


def find_kind(path: str) -> str:
    """Return which kind of database a file is; empty for all others."""
    match = _WANTED.fullmatch(path)
    return (match.lastgroup or "") if match else ""


OLD_RPM: Final = "old_rpm"
"""A database of rpm before 4.16, which is not read."""


def list_packages(files: Mapping[str, bytes]) -> list[Package]:
    """Return the packages that the databases of a file system name, sorted."""
    distribution = _read_distribution(files)
    packages: set[Package] = set()
    for path, data in files.items():
        text = data.decode(errors="replace")
        match find_kind(path):
            case "dpkg":
                packages.update(_read_dpkg(text, distribution or "debian"))
            case "apk":
                packages.update(_read_apk(text, distribution or "alpine"))
            case "rpm":
                packages.update(_read_rpm(data, distribution))
            case "pypi":
                packages.update(_read_python(text))
            case "npm":
                packages.update(_read_node(text, path))
            case _:
                pass
    return sorted(package for package in packages if _is_sane(package))


def _read_distribution(files: Mapping[str, bytes]) -> str:
    for path in ("etc/os-release", "usr/lib/os-release"):
        text = files.get(path, b"").decode(errors="replace")
        for line in text.splitlines():
            if line.startswith("ID="):
                return line.removeprefix("ID=").strip("\"' ")
    return ""


def _read_dpkg(text: str, distribution: str) -> Iterator[Package]:
    for stanza in text.split("\n\n"):
        fields = _read_fields(stanza)
        status = fields.get("Status", "install ok installed")
        if fields.get("Package") and fields.get("Version") and status.endswith(" installed"):
            yield Package(
                "deb",
                fields["Package"],
                fields["Version"],
                distribution,
                fields.get("Architecture", ""),
            )


def _read_apk(text: str, distribution: str) -> Iterator[Package]:
    for stanza in text.split("\n\n"):
        fields = _read_fields(stanza)
        if fields.get("P") and fields.get("V"):
            yield Package("apk", fields["P"], fields["V"], distribution, fields.get("A", ""))


def _read_rpm(data: bytes, distribution: str) -> list[Package]:
    try:
        return list(read_rpm(data, distribution))
    except ValueError:
        return []


def _read_fields(stanza: str) -> Mapping[str, str]:
    """Return the fields of a stanza; lines that continue others are left out."""
    lines = (line.partition(":") for line in stanza.splitlines() if not line.startswith(" "))
    return {key: value.strip() for key, colon, value in lines if colon}


def _read_python(text: str) -> Iterator[Package]:
    headers = HeaderParser().parsestr(text, headersonly=True)
    name, version = headers.get("Name", ""), headers.get("Version", "")
    if name and version:
        yield Package("pypi", re.sub(r"[-_.]+", "-", str(name)).lower(), str(version))


def _read_node(text: str, path: str) -> Iterator[Package]:
    try:
        document: JsonObject = object_or_empty(json.loads(text))
    except (ValueError, RecursionError):
        return
    name, version = text_or_empty(document.get("name")), text_or_empty(document.get("version"))
    # A package may contain other files of this name; its own is called like its folder.
    folder = posixpath.dirname(path).rpartition("node_modules/")[2]
    if name == folder and version:
        scope, slash, rest = name.partition("/")
        yield Package("npm", rest if slash else name, version, scope if slash else "")


def _is_sane(package: Package) -> bool:
    """Return whether a package has texts as package managers write them."""
    texts = (package.name, package.version, package.namespace, package.architecture)
    return all(len(text) <= _MOST_TEXT and text.isprintable() for text in texts)
