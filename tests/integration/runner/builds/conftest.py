"""What tests of builds share."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from exclave.client.oci.client import OciClient
from tests.integration.runner.builds.image_kit import Yard
from tests.support.buildah import need_buildah
from tests.support.registries import serve_registry


@pytest.fixture
async def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Yard]:
    """A build runner with buildah, and the vendor's registry."""
    monkeypatch.setenv("PATH", str(need_buildah().parent), prepend=os.pathsep)
    with serve_registry(tmp_path / "registry") as url:
        async with OciClient(url) as client:
            yield Yard(tmp_path, client, client.open_repository("apps/demo"))
