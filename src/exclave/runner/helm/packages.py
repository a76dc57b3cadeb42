"""Packages of charts: unpacked within limits, packed so that the same files give the same bytes."""

import gzip
import hashlib
import io
import tarfile
from pathlib import Path
from typing import BinaryIO, Final, NoReturn

from exclave.base.archives import ArchiveLimits, unpack_archive
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

CONFIG_TYPE: Final = "application/vnd.cncf.helm.config.v1+json"
LAYER_TYPE: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
LIMITS: Final = ArchiveLimits(total_bytes=100 << 20, file_bytes=5 << 20)
"""Helm's own limits for a chart."""
_GZIP_LEVEL = 9


def unpack_chart(package: Path, target: Path) -> Path:
    """Unpack a packed chart into a new folder; return the chart's own folder in it."""
    try:
        with gzip.open(package, "rb") as data:
            unpack_archive(data, target, limits=LIMITS)  # type: ignore[arg-type] # it only reads
    except (OSError, EOFError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        _refuse("the package is not a gzip file, or it is cut off")
    folders = [path for path in target.iterdir() if path.is_dir() and not path.is_symlink()]
    if len(folders) != 1:
        _refuse("the package has to contain one folder, named after the chart")
    return folders[0]


def pack_chart(folder: Path, name: str, out: BinaryIO) -> str:
    """Write a chart's folder as a deterministic package; return its digest."""
    tar_bytes = io.BytesIO()
    with tarfile.open(fileobj=tar_bytes, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            data = path.read_bytes()
            info = tarfile.TarInfo(f"{name}/{path.relative_to(folder).as_posix()}")
            info.size, info.mode = len(data), 0o644
            tar.addfile(info, io.BytesIO(data))
    packed = compress(tar_bytes.getvalue())
    out.write(packed)
    return f"sha256:{hashlib.sha256(packed).hexdigest()}"


def compress(data: bytes) -> bytes:
    """Return gzip bytes that depend on the data alone: without a time and a file name."""
    return gzip.compress(data, _GZIP_LEVEL, mtime=0)


def _refuse(message: str) -> NoReturn:
    raise WorkFailed(Reason.SOURCE_INVALID, message)
