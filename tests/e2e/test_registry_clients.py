"""The registry as the world's clients use it: crane, regctl, containers/image and helm, each unchanged."""

import asyncio
import json
import os
import subprocess
import tarfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from exclave.control.access import authenticate_user
from exclave.control.orgs import accounts
from exclave.control.registry.tokens import create_registry_token
from exclave.domain.identity import User
from exclave.main.server import Running, run_control_plane
from exclave.main.settings import ServerSettings
from exclave.wire.registry import NewRegistryToken
from tests.support.kubernetes_tools import need_helm3
from tests.support.tools import need_imagecopy, need_tool

SIZE = 20 << 20


@dataclass(frozen=True)
class Live:
    """A control plane on real ports, and a folder in which clients keep their logins."""

    running: Running
    folder: Path
    user: User

    @property
    def host(self) -> str:
        return self.running.runner_url.removeprefix("http://")

    def name(self, repository: str) -> str:
        return f"{self.host}/{self.user.org}/{repository}"

    async def token(self, repository: str = "*", *, push: bool = True) -> str:
        wish = NewRegistryToken(repository=repository, push=push)
        return (await create_registry_token(self.running.deps, self.user, wish)).password

    async def run(
        self, *argv: object, fails: bool = False, env: Mapping[str, str] | None = None
    ) -> str:
        """Run a client and return its output; assert that it succeeds, or fails as expected."""
        own = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "DOCKER_CONFIG": str(self.folder / "docker"),
            **(env or {}),
        }
        process = await asyncio.create_subprocess_exec(
            *map(str, argv), env=own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        out, _ = await asyncio.wait_for(process.communicate(), 120)
        assert bool(process.returncode) == fails, out.decode()
        return out.decode()


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[Live]:
    settings = ServerSettings(data=tmp_path / "data", control_port=0, runner_port=0)
    async with run_control_plane(settings) as running:
        deps = running.deps
        made = await deps.db.write(lambda tx: accounts.create_org(tx, deps, "acme", "founder"))
        yield Live(running, tmp_path, await authenticate_user(deps, made.token))


def make_layer(folder: Path, size: int = SIZE) -> Path:
    (folder / "data.bin").write_bytes(os.urandom(size))
    layer = folder / "layer.tar"
    with tarfile.open(layer, "w") as tar:
        tar.add(folder / "data.bin", "data.bin")
    return layer


async def test_crane_pushes_pulls_lists_mounts_and_deletes(live: Live) -> None:
    crane = need_tool("crane")
    await live.run(crane, "auth", "login", live.host, "-u", "exclave", "-p", await live.token())
    layer = make_layer(live.folder)
    image, copy = live.name("apps/demo"), live.name("apps/copy")

    await live.run(crane, "append", "-f", layer, "-t", f"{image}:v1")
    digest = (await live.run(crane, "digest", f"{image}:v1")).strip()
    await live.run(crane, "tag", f"{image}@{digest}", "v2")
    tags = await live.run(crane, "ls", image)
    said = await live.run(crane, "copy", f"{image}:v1", f"{copy}:v1")
    await live.run(crane, "export", f"{copy}@{digest}", live.folder / "out.tar")
    await live.run(crane, "validate", "--remote", f"{copy}:v1")

    assert tags.split() == ["v1", "v2"]
    assert "mounted blob" in said
    with tarfile.open(live.folder / "out.tar") as tar:
        member = tar.extractfile("data.bin")
        assert member is not None
        assert member.read() == (live.folder / "data.bin").read_bytes()
    await live.run(crane, "delete", f"{image}@{digest}")
    assert "MANIFEST_UNKNOWN" in await live.run(crane, "manifest", f"{image}:v1", fails=True)
    await live.run(crane, "manifest", f"{copy}:v1")


async def test_crane_is_held_to_what_its_token_allows(live: Live) -> None:
    crane = need_tool("crane")
    await live.run(crane, "auth", "login", live.host, "-u", "exclave", "-p", await live.token())
    layer = make_layer(live.folder, 1000)
    await live.run(crane, "append", "-f", layer, "-t", live.name("apps/demo") + ":v1")
    reader = await live.token("apps/demo", push=False)
    await live.run(crane, "auth", "login", live.host, "-u", "exclave", "-p", reader)

    await live.run(crane, "pull", live.name("apps/demo") + ":v1", live.folder / "image.tar")

    push = [crane, "append", "-f", layer, "-t", live.name("apps/demo") + ":v2"]
    assert "DENIED" in await live.run(*push, fails=True)
    hidden = [crane, "ls", live.name("apps/other")]
    assert "NAME_UNKNOWN" in await live.run(*hidden, fails=True)
    await live.run(crane, "auth", "login", live.host, "-u", "exclave", "-p", "xcg_wrong")
    refused = await live.run(crane, "ls", live.name("apps/demo"), fails=True)
    assert "UNAUTHORIZED" in refused


async def test_regctl_pushes_in_chunks_and_finds_referrers(live: Live) -> None:
    regctl = need_tool("regctl")
    token = await live.token()
    chunks = ["--blob-chunk", str(1 << 20), "--blob-max", str(2 << 20)]
    await live.run(
        regctl, "registry", "set", live.host, "--skip-check", "--tls", "disabled", *chunks
    )
    await live.run(regctl, "registry", "login", live.host, "-u", "exclave", "-p", token)
    layer = make_layer(live.folder)
    name = live.name("apps/demo")

    await live.run(
        regctl, "artifact", "put", "--artifact-type", "application/x", "-f", layer, f"{name}:v1"
    )
    await live.run(
        regctl,
        "artifact",
        "put",
        "--artifact-type",
        "application/sbom",
        "-f",
        layer,
        "--subject",
        f"{name}:v1",
    )
    listed = await live.run(regctl, "artifact", "list", f"{name}:v1", "--format", "{{json .}}")
    got = live.folder / "got"
    got.mkdir()
    await live.run(regctl, "artifact", "get", f"{name}:v1", "--strip-dirs", "-o", got)
    await live.run(
        regctl, "image", "copy", f"{name}:v1", live.name("apps/copy") + ":v1", "--referrers"
    )

    found = json.loads(listed[listed.index("{") :])
    assert [each["artifactType"] for each in found["descriptors"]] == ["application/sbom"]
    assert [file.read_bytes() for file in got.rglob("*") if file.is_file()] == [layer.read_bytes()]
    await live.run(regctl, "tag", "delete", f"{name}:v1")
    assert await live.run(regctl, "tag", "ls", live.name("apps/copy")) != ""


async def test_containers_image_copies_out_and_in_and_deletes(live: Live) -> None:
    imagecopy, crane = need_imagecopy(), need_tool("crane")
    token = await live.token()
    login = {"REGISTRY_USER": "exclave", "REGISTRY_PASSWORD": token}
    source, target = (
        f"docker://{live.name('apps/demo')}:v1",
        f"docker://{live.name('apps/copy')}:v1",
    )
    await live.run(crane, "auth", "login", live.host, "-u", "exclave", "-p", token)
    layer = make_layer(live.folder)
    await live.run(crane, "append", "-f", layer, "-t", source.removeprefix("docker://"))

    folder = f"dir:{live.folder / 'layout'}"
    await live.run(imagecopy, "copy", source, folder, env=login)
    await live.run(imagecopy, "copy", folder, target, env=login)
    seen = [
        json.loads(await live.run(imagecopy, "inspect", one, env=login)) for one in (source, target)
    ]
    tags = json.loads(await live.run(imagecopy, "tags", target, env=login))
    await live.run(imagecopy, "delete", target, env=login)

    assert seen[0] == seen[1]
    assert len(seen[0]["layers"]) == 1
    assert tags == ["v1"]
    assert "manifest unknown" in await live.run(imagecopy, "inspect", target, fails=True, env=login)
    await live.run(imagecopy, "inspect", source, env=login)


async def test_helm_pushes_and_pulls_a_chart(live: Live) -> None:
    helm, crane = need_helm3(), need_tool("crane")
    token = await live.token()
    await live.run(helm, "registry", "login", live.host, "-u", "exclave", "-p", token)
    await live.run(crane, "auth", "login", live.host, "-u", "exclave", "-p", token)
    await live.run(helm, "create", live.folder / "shop")
    await live.run(helm, "package", live.folder / "shop", "-d", live.folder)
    where = f"oci://{live.name('charts')}"
    pulled = live.folder / "pulled"
    pulled.mkdir()

    said = await live.run(helm, "push", live.folder / "shop-0.1.0.tgz", where, "--plain-http")
    await live.run(
        helm, "pull", f"{where}/shop", "--version", "0.1.0", "--plain-http", "-d", pulled
    )
    manifest = json.loads(await live.run(crane, "manifest", live.name("charts/shop") + ":0.1.0"))

    assert "Digest: sha256:" in said
    assert (pulled / "shop-0.1.0.tgz").read_bytes() == (live.folder / "shop-0.1.0.tgz").read_bytes()
    assert manifest["config"]["mediaType"] == "application/vnd.cncf.helm.config.v1+json"
