"""The runner program as a wheel: the same bytes each time, and nothing of the server in it."""

import io
import zipfile

from exclave import __version__
from exclave.control.stacks.runner_package import load_package
from exclave.control.stacks.wheel import build_wheel

FILES = {"pkg/b.py": b"b", "pkg/__init__.py": b""}


def make(files: dict[str, bytes]) -> bytes:
    return build_wheel(
        "pkg",
        "1.0",
        files,
        requires=["click>=8"],
        requires_python=">=3.11",
        scripts={"pkg": "pkg:main"},
    )


def test_the_same_files_in_any_order_give_the_same_bytes() -> None:
    assert make(FILES) == make(dict(reversed(FILES.items())))
    assert make(FILES) != make({**FILES, "pkg/b.py": b"c"})


def test_a_wheel_has_its_metadata_and_a_record_of_all_files() -> None:
    archive = zipfile.ZipFile(io.BytesIO(make(FILES)))

    record = archive.read("pkg-1.0.dist-info/RECORD").decode().splitlines()
    assert [line.split(",")[0] for line in record][:2] == [
        "pkg-1.0.dist-info/METADATA",
        "pkg-1.0.dist-info/WHEEL",
    ]
    assert record[-1] == "pkg-1.0.dist-info/RECORD,,"
    assert "Requires-Dist: click>=8" in archive.read("pkg-1.0.dist-info/METADATA").decode()


def test_customers_get_the_runner_and_nothing_of_the_control_plane() -> None:
    package = load_package()

    names = zipfile.ZipFile(io.BytesIO(package.data)).namelist()
    assert package.file == f"exclave-{__version__}-py3-none-any.whl"
    assert {"exclave/runner/runner.py", "exclave/runner/runner.lock", "exclave/main/stack.py"} <= {
        *names
    }
    rooms = {name.split("/")[1] for name in names if name.startswith("exclave/")}
    assert "jobspec" in rooms  # a runner may make the jobs that it is given itself, and compare
    assert not rooms & {"api", "control", "storage", "flow", "registry", "stacks"}
    assert not [name for name in names if "__pycache__" in name]


def test_the_lock_pins_every_dependency_of_the_runner() -> None:
    archive = zipfile.ZipFile(io.BytesIO(load_package().data))
    metadata = archive.read(f"exclave-{__version__}.dist-info/METADATA").decode()
    lock = archive.read("exclave/runner/runner.lock").decode()

    needed = [
        line.split()[1].split(">")[0]
        for line in metadata.splitlines()
        if line.startswith("Requires-Dist: ")
    ]
    assert needed
    for name in needed:
        assert f"\n{name}==" in f"\n{lock}", name
    assert "sqlalchemy" not in lock
