"""Downloads a tool from its vendor or a mirror, and verifies its checksum."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from exclave.base.errors import Problem
from exclave.client.downloads import download_file, download_text
from exclave.client.transport import Link
from exclave.runner.tools.catalog import Vendor
from exclave.runner.tools.unpack import unpack_tool

_MOST_BYTES = 512 << 20
_WITHIN_S = 600.0
_SUMS_WITHIN_S = 60.0
_SUM = re.compile(r"^([0-9a-fA-F]{64})(?:\s+\*?(\S+))?\s*$", re.MULTILINE)


class ChecksumWrong(Problem):
    """The download does not match the published checksum."""

    code = "checksum_wrong"
    hint = "Do not use the file. Check the mirror and the proxy."


async def fetch_tool(
    vendor: Vendor,
    version: str,
    folder: Path,
    *,
    link: Link,
    mirror: str,
    checksums: Mapping[str, str],
) -> Path:
    """Download, verify and unpack a tool into a folder; return the program.

    The checksum comes from the settings (`name@version`), or else from the vendor's list.
    """
    base = f"{mirror.rstrip('/')}/{vendor.name}/{{v}}" if mirror else vendor.folder
    source = replace(link, url=vendor.fill(base, version))
    name = vendor.fill(vendor.file, version)
    wanted = checksums.get(f"{vendor.name}@{version}", "").removeprefix("sha256:")
    if not wanted:
        sums = vendor.fill(vendor.sums, version)
        wanted = find_sum(await download_text(source, sums, within_s=_SUMS_WITHIN_S), name)
    package = folder / "package"
    await download_file(source, name, package, most=_MOST_BYTES, within_s=_WITHIN_S)
    with package.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != wanted.lower():
        raise ChecksumWrong(f"`{name}` has the checksum {actual}, not {wanted}")
    return unpack_tool(vendor, version, package, folder)


def find_sum(text: str, name: str) -> str:
    """Return the checksum of a file in a list, or the only one of a list without names."""
    lines = _SUM.findall(text)
    for value, listed in lines:
        if listed == name or (not listed and len(lines) == 1):
            return str(value)
    raise ChecksumWrong(f"the list of checksums does not name `{name}`")
