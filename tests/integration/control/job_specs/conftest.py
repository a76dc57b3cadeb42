"""The app that the tests of this folder install."""

import shutil
from pathlib import Path

import pytest

from tests.integration.control.job_specs.kubernetes_app import FILES
from tests.support.install_fixture import NOTICEBOARD


@pytest.fixture
def app(tmp_path: Path) -> Path:
    folder = shutil.copytree(NOTICEBOARD, tmp_path / "noticeboard")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder
