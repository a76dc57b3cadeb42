"""The Kubernetes demo on a machine that cannot have buildah: it says so and builds nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import buildah
from tests.support.kubernetes_demo import EXAMPLE, provide_buildah


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the example, on a machine without buildah and without a cache of it."""
    monkeypatch.setattr(buildah, "_FOLDER", tmp_path / "cache")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    return Path(shutil.copytree(EXAMPLE, tmp_path / "app"))


def add_program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def read_type(app: Path) -> str:
    lines = (app / "components" / "image.toml").read_text().splitlines()
    return next(line for line in lines if line.startswith("type"))


def test_without_buildah_and_without_debian_the_base_image_is_deployed(
    app: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = provide_buildah(app)

    printed = capsys.readouterr().out
    assert "There is no buildah (this is no Debian: install the package of your system)" in printed
    assert path == os.environ["PATH"]
    assert read_type(app) == 'type = "container_image"'
    exclave = Path(sys.executable).with_name("exclave")
    checked = subprocess.run(
        [exclave, "apps", "validate", app], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(
    ("programs", "told"),
    [
        ({"apt-get": "echo no network >&2; exit 100", "dpkg-deb": "exit 0"}, "no network"),
        ({"buildah": "echo libgpgme is missing >&2; exit 127"}, "libgpgme is missing"),
    ],
)
def test_a_buildah_that_cannot_be_had_or_started_counts_as_none(
    app: Path, programs: dict[str, str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, script in programs.items():
        add_program(app.parent / "bin", name, script)

    provide_buildah(app)

    assert told in capsys.readouterr().out
    assert read_type(app) == 'type = "container_image"'


def test_with_buildah_the_image_is_built(app: Path) -> None:
    add_program(app.parent / "bin", "buildah", "exit 0")

    path = provide_buildah(app)

    assert path.startswith(f"{app.parent / 'bin'}{os.pathsep}")
    assert read_type(app) == 'type = "docker_build"'
