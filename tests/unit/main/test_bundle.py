"""Archives of the runner program: the same wheels make the same bytes, others are refused."""

import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from exclave.main import bundle
from exclave.main.bundle import BundleFailed, pack, read_wheels, write_bundle

FILES = {
    "pkg/__init__.py": b"X = 1\n",
    "pkg/tests/test_pkg.py": b"",
    "pkg-1.data/purelib/more.py": b"Y = 2\n",
    "pkg-1.data/scripts/run": b"#!",
    "pkg-1.dist-info/METADATA": b"Name: pkg\n",
}


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in FILES.items():
            archive.writestr(name, text)
    (folder / "pkg-1-py3-none-any.whl").write_bytes(data.getvalue())
    allowed = frozenset({hashlib.sha256(data.getvalue()).hexdigest()})
    monkeypatch.setattr(bundle, "read_hashes", lambda: allowed)
    return folder


def read(path: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(path) as archive:
        return {member.name: member for member in archive}


def test_the_same_wheels_make_the_same_archive(tmp_path: Path, wheels: Path) -> None:
    first = write_bundle(tmp_path / "a", "x86_64", wheels)
    second = write_bundle(tmp_path / "b", "x86_64", wheels)

    assert first.sha256 == second.sha256
    assert first.path.read_bytes() == second.path.read_bytes()
    assert hashlib.sha256(first.path.read_bytes()).hexdigest() == first.sha256


def test_an_archive_has_the_program_and_nothing_that_a_machine_does_not_need(
    tmp_path: Path, wheels: Path
) -> None:
    made = write_bundle(tmp_path, "aarch64", wheels)

    members = read(made.path)
    assert made.path.name.startswith("runner-")
    assert made.path.name.endswith("-aarch64.tar.gz")
    assert {"launch.py", "site/pkg/__init__.py", "site/more.py", "site/exclave/__init__.py"} <= set(
        members
    )
    assert not [name for name in members if "tests/" in name or "scripts" in name]
    assert not [name for name in members if "exclave/control" in name or "exclave/storage" in name]
    assert all(member.isreg() and member.mode == 0o644 for member in members.values())
    assert {(member.mtime, member.uid, member.uname) for member in members.values()} == {(0, 0, "")}


def test_another_python_is_in_the_name(tmp_path: Path, wheels: Path) -> None:
    made = write_bundle(tmp_path, "x86_64", wheels, "3.13")

    assert made.path.name.endswith("-x86_64-cp313.tar.gz")


def test_a_wheel_that_the_lock_file_does_not_name_is_refused(tmp_path: Path, wheels: Path) -> None:
    (wheels / "evil-1-py3-none-any.whl").write_bytes(b"PK")

    with pytest.raises(BundleFailed, match=r"`evil-1-py3-none-any\.whl` is not what"):
        write_bundle(tmp_path, "x86_64", wheels)


def test_a_folder_without_wheels_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(BundleFailed, match="there are no wheels"):
        list(read_wheels(tmp_path, frozenset()))


def test_the_order_of_files_does_not_matter() -> None:
    assert pack({"a": b"1", "b": b"2"}) == pack({"b": b"2", "a": b"1"})
