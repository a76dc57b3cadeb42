"""Reproducible wheels: the same files give the same bytes on every machine."""

import base64
import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence

_DATE = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644 << 16
_WHEEL = "Wheel-Version: 1.0\nGenerator: exclave\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def name_wheel(name: str, version: str) -> str:
    """Return the file name of a pure Python wheel."""
    return f"{name}-{version}-py3-none-any.whl"


def build_wheel(
    name: str,
    version: str,
    files: Mapping[str, bytes],
    *,
    requires: Sequence[str],
    requires_python: str,
    scripts: Mapping[str, str],
) -> bytes:
    """Return a wheel, uncompressed: the bytes do not depend on a version of zlib."""
    info = f"{name}-{version}.dist-info"
    metadata = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        f"Requires-Python: {requires_python}",
        *(f"Requires-Dist: {requirement}" for requirement in requires),
    ]
    commands = [f"{command} = {target}" for command, target in sorted(scripts.items())]
    contents = {
        **files,
        f"{info}/METADATA": _write_lines(metadata),
        f"{info}/WHEEL": _WHEEL.encode(),
        f"{info}/entry_points.txt": _write_lines(["[console_scripts]", *commands]),
    }
    record = [f"{file},{_hash(data)},{len(data)}" for file, data in sorted(contents.items())]
    contents[f"{info}/RECORD"] = _write_lines([*record, f"{info}/RECORD,,"])
    return _pack(contents)


def _pack(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for file, data in sorted(files.items()):
            entry = zipfile.ZipInfo(file, _DATE)
            entry.external_attr = _MODE
            entry.create_system = 3
            archive.writestr(entry, data)
    return out.getvalue()


def _hash(data: bytes) -> str:
    digest = hashlib.sha256(data).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _write_lines(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
