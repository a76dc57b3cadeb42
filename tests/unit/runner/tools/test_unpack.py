"""Archives of tools: the program comes out, and nothing that a hostile archive wants."""

import gzip
import io
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from exclave.runner.tools import unpack
from exclave.runner.tools.catalog import VENDORS
from exclave.runner.tools.unpack import PackageWrong, unpack_tool

HELM = VENDORS["helm"]
MEMBER = HELM.fill(HELM.member, HELM.default)


def make_entry(name: str, content: bytes) -> tuple[tarfile.TarInfo, bytes]:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    return entry, content


def make_link(
    name: str, target: str, kind: bytes = tarfile.SYMTYPE
) -> tuple[tarfile.TarInfo, bytes]:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, target
    return entry, b""


def pack(folder: Path, *entries: tuple[tarfile.TarInfo, bytes]) -> Path:
    package = folder / "package"
    with tarfile.open(package, "w:gz") as archive:
        for entry, content in entries:
            archive.addfile(entry, io.BytesIO(content))
    return package


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "tool"
    made.mkdir()
    return made


def unpack_helm(package: Path, folder: Path) -> Path:
    return unpack_tool(HELM, HELM.default, package, folder)


def test_the_program_is_taken_from_a_tar_archive_and_nothing_else(
    tmp_path: Path, folder: Path
) -> None:
    package = pack(tmp_path, make_entry("linux-other/helm", b"other"), make_entry(MEMBER, b"helm"))

    program = unpack_helm(package, folder)

    assert (program, program.read_bytes()) == (folder / "helm", b"helm")
    assert os.access(program, os.X_OK)
    assert list(folder.iterdir()) == [program]
    assert not package.exists()


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [make_entry("helm", b"at another place")],
        [make_entry(f"./../{MEMBER}", b"outside")],
        [make_link(MEMBER, "/etc/passwd")],
        [make_entry("secret", b"x"), make_link(MEMBER, "secret", tarfile.LNKTYPE)],
        [make_link(MEMBER, "", tarfile.DIRTYPE)],
        [make_link(MEMBER, "", tarfile.FIFOTYPE)],
    ],
    ids=["empty", "elsewhere", "outside", "symlink", "hard link", "folder", "pipe"],
)
def test_an_archive_without_the_program_is_refused(
    tmp_path: Path, folder: Path, entries: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    package = pack(tmp_path, *entries)

    with pytest.raises(PackageWrong, match=f"does not hold the program `{MEMBER}`"):
        unpack_helm(package, folder)

    assert list(folder.iterdir()) == []


def truncate(data: bytes) -> bytes:
    return data[: len(data) // 2]


def corrupt(data: bytes) -> bytes:
    return data[:40] + bytes(byte ^ 0xFF for byte in data[40:60]) + data[60:]


@pytest.mark.parametrize(
    "spoil", [truncate, corrupt, lambda _: b"<html>not found</html>", lambda _: b""]
)
def test_a_broken_archive_is_refused(
    tmp_path: Path, folder: Path, spoil: Callable[[bytes], bytes]
) -> None:
    package = pack(tmp_path, make_entry(MEMBER, os.urandom(20_000)))
    package.write_bytes(spoil(package.read_bytes()))

    with pytest.raises(PackageWrong, match=r"not a readable tar\.gz archive"):
        unpack_helm(package, folder)


@pytest.mark.parametrize("first", ["padding", MEMBER])
def test_an_archive_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, folder: Path, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpack, "MOST_BYTES", 1 << 20)
    package = pack(tmp_path, make_entry(first, bytes(2 << 20)), make_entry(MEMBER, b"helm"))

    with pytest.raises(PackageWrong, match="unpacks to more than"):
        unpack_helm(package, folder)


def test_a_gzip_bomb_without_an_archive_is_refused(tmp_path: Path, folder: Path) -> None:
    package = tmp_path / "package"
    package.write_bytes(gzip.compress(b"x" * (1 << 20)))

    with pytest.raises(PackageWrong):
        unpack_helm(package, folder)


def test_a_zip_archive_without_the_program_is_refused(tmp_path: Path, folder: Path) -> None:
    package = tmp_path / "package"
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("README", "no program")

    with pytest.raises(PackageWrong, match="does not hold the program `terraform`"):
        unpack_tool(VENDORS["terraform"], "1.11.4", package, folder)


def test_a_plain_program_is_made_executable(tmp_path: Path, folder: Path) -> None:
    package = tmp_path / "package"
    package.write_bytes(b"kubectl")

    program = unpack_tool(VENDORS["kubectl"], "1.37.1", package, folder)

    assert program.read_bytes() == b"kubectl"
    assert os.access(program, os.X_OK)
