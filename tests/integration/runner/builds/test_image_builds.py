"""Images from Dockerfiles, built by a real buildah: equal digests, failures in one line."""

import gzip
import hashlib
import json
import os
import tarfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from exclave.base.secrets import Secret
from exclave.client.oci.client import Login, OciClient
from exclave.client.oci.repository import OciRepository
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Outcome
from tests.integration.runner.executors.build_kit import Site, upload, uploaded
from tests.support.buildah import need_buildah
from tests.support.images import make_image, push_image
from tests.support.registries import PASSWORD, USERNAME, serve_registry

PLAIN = 'FROM scratch\nARG NAME=none\nCOPY app.txt /app.txt\nLABEL name=$NAME\nCMD ["/app"]\n'


def make_tar_layer() -> bytes:
    """Return a layer with one file."""
    plain = BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        entry = tarfile.TarInfo("base.txt")
        entry.size = 4
        archive.addfile(entry, BytesIO(b"base"))
    return gzip.compress(plain.getvalue(), mtime=0)


def describe_rootfs(layer: bytes) -> dict[str, Any]:
    digest = hashlib.sha256(gzip.decompress(layer)).hexdigest()
    return {"rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}, "config": {}}


@dataclass
class Yard:
    """A build runner with buildah, and the vendor's registry."""

    folder: Path
    registry: OciClient
    own: OciRepository
    count: int = 0
    credentials: Mapping[str, str] = field(default_factory=dict)

    async def build(self, files: Mapping[str, str], **docker: Any) -> Outcome:
        self.count += 1
        folder = self.folder / f"build-{self.count}"
        folder.mkdir()
        archive = upload(folder / "app", files)
        self.site = Site(folder / "site", archive, registry=self.registry)
        if self.credentials:
            file = folder / "site" / "source-credentials.json"
            file.write_text(json.dumps({"credentials": [self.credentials]}))
            file.chmod(0o600)
        options = {"dockerfile": "Dockerfile", **docker}
        return await self.site.build(uploaded(archive, "."), type="image_build", docker=options)

    async def read_config(self, digest: str) -> dict[str, Any]:
        manifest = json.loads((await self.own.fetch_manifest(digest)).data)
        calls = self.own.calls
        path = calls.path("apps/demo", f"blobs/{manifest['config']['digest']}")
        reply = await calls.send("GET", path, "apps/demo")
        found: dict[str, Any] = json.loads(reply.content)
        return found


@pytest.fixture
async def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Yard]:
    monkeypatch.setenv("PATH", str(need_buildah().parent), prepend=os.pathsep)
    with serve_registry(tmp_path / "registry") as url:
        async with OciClient(url) as client:
            yield Yard(tmp_path, client, client.open_repository("apps/demo"))


async def test_the_same_files_give_the_same_digest(yard: Yard) -> None:
    files = {"Dockerfile": PLAIN, "app.txt": "hello"}

    first = await yard.build(files)
    second = await yard.build(files)
    other = await yard.build({**files, "app.txt": "bye"})

    assert (first.state, first.message) == (OutcomeState.SUCCEEDED, "")
    assert first.outputs["digest"] == second.outputs["digest"] != other.outputs["digest"]
    assert await yard.own.has_manifest(str(first.outputs["digest"]))


async def test_build_args_and_a_target(yard: Yard) -> None:
    stages = "FROM scratch AS one\nARG NAME\nLABEL name=$NAME\nFROM one\nLABEL stage=two\n"

    outcome = await yard.build({"Dockerfile": stages}, build_args={"NAME": "shop"}, target="one")

    config = await yard.read_config(str(outcome.outputs["digest"]))
    assert config["config"]["Labels"] == {"name": "shop"}
    assert "build args: NAME" in yard.site.bench.read_log()


async def test_an_instruction_that_fails_is_named_with_its_line(yard: Yard) -> None:
    dockerfile = "FROM scratch\n\n# a comment\nCOPY missing.txt /x\n"

    outcome = await yard.build({"Dockerfile": dockerfile})

    assert outcome.reason is Reason.EXIT_CODE
    assert "Dockerfile:4: COPY missing.txt /x" in outcome.message
    assert "\n" not in outcome.message


async def test_a_command_that_cannot_start_is_named_with_its_line(yard: Yard) -> None:
    outcome = await yard.build({"Dockerfile": "FROM scratch\nRUN true\n"})

    assert outcome.reason is Reason.EXIT_CODE
    assert "Dockerfile:2: RUN true: " in outcome.message


async def test_a_base_image_behind_a_login(yard: Yard, tmp_path: Path) -> None:
    layer = make_tar_layer()
    image = make_image(layer, config=describe_rootfs(layer))
    with serve_registry(tmp_path / "private", login=True) as url:
        login = Login(USERNAME, Secret(PASSWORD))
        async with OciClient(url, login=login) as client:
            await push_image(client.open_repository("acme/base"), image, tmp_path, "1")
        yard.credentials = {"prefix": url, "username": USERNAME, "password": PASSWORD}

        outcome = await yard.build(
            {"Dockerfile": f"FROM {url.removeprefix('http://')}/acme/base:1\nLABEL a=b\n"}
        )

    assert (outcome.state, outcome.message) == (OutcomeState.SUCCEEDED, "")
    assert PASSWORD not in yard.site.bench.read_log()


async def test_a_dockerfile_that_is_not_there(yard: Yard) -> None:
    outcome = await yard.build({"Dockerfile": PLAIN}, dockerfile="Nothing")

    assert outcome.reason is Reason.SOURCE_INVALID
    assert "there is no file `Nothing`" in outcome.message


async def test_without_buildah_the_build_says_what_to_install(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    outcome = await yard.build({"Dockerfile": PLAIN, "app.txt": "hello"})

    assert outcome.reason is Reason.TOOL_MISSING
    assert "install the package of your system" in outcome.message
