"""Layers of images that are kept in the org's registry for the next build, with a real buildah."""

import re
from pathlib import Path

import httpx
import pytest

from exclave.base.ids import SystemRandomness
from exclave.client.oci.client import OciClient
from exclave.client.oci.repository import OciRepository
from exclave.client.retry import RetryPolicy
from exclave.runner.builds.images.layer_cache import name_cache
from exclave.runner.builds.images.layer_proxy import LayerProxy
from exclave.runner.builds.images.layer_store import LayerStore
from exclave.wire.jobs import OutcomeState
from exclave.wire.runner import Outcome
from exclave.wire.specs import BuildSpec
from tests.integration.runner.builds.image_kit import Yard

CACHE = "cache/apps/demo/web"
DOCKERFILE = """FROM scratch AS tools
COPY programs /
RUN ["/bin/sh", "-c", "echo built > /made"]
COPY app.txt /app.txt
RUN ["/bin/sh", "-c", "cat /made /app.txt > /both"]
FROM scratch
COPY --from=tools /both /both
"""


async def build(yard: Yard, app: str = "hello", dockerfile: str = DOCKERFILE) -> Outcome:
    files = {"Dockerfile": dockerfile, "app.txt": app}
    outcome = await yard.build(files, programs=True, part="component:web")
    assert (outcome.state, outcome.message) == (OutcomeState.SUCCEEDED, "")
    return outcome


def list_reused(yard: Yard) -> list[str]:
    """Return the instructions that the last build did not run, by their beginning."""
    reused: list[str] = []
    step = ""
    for line in yard.site.bench.read_log().splitlines():
        if match := re.search(r"STEP \d+/\d+: (.*)", line):
            step = match[1]
        if "--> Cache pulled from remote" in line:
            reused.append(step.split(" ", 2)[0])
    return reused


async def test_a_second_build_of_the_same_files_runs_nothing_and_gives_the_same_image(
    yard: Yard,
) -> None:
    first = await build(yard)
    assert list_reused(yard) == []

    second = await build(yard)

    assert list_reused(yard).count("RUN") == 2
    assert first.outputs["digest"] == second.outputs["digest"]
    yard.caches_layers = False
    without = await build(yard)
    assert list_reused(yard) == []
    assert await yard.list_files(str(without.outputs["digest"])) == await yard.list_files(
        str(first.outputs["digest"])
    )


async def test_what_comes_after_a_changed_file_is_built_again(yard: Yard) -> None:
    await build(yard)

    changed = await build(yard, "bye")

    assert list_reused(yard).count("RUN") == 1
    layers = await yard.read_layers(str(changed.outputs["digest"]))
    assert b"bye" in b"".join(layers)
    assert b"hello" not in b"".join(layers)


async def test_a_damaged_layer_is_built_again(yard: Yard) -> None:
    first = await build(yard)
    damaged = damage_blobs(yard.folder / "registry")

    second = await build(yard)

    assert damaged
    assert first.outputs["digest"] == second.outputs["digest"]
    # A layer that this build has made itself may be found in the store again.
    assert "RUN" not in list_reused(yard)


async def test_another_component_reuses_nothing(yard: Yard) -> None:
    await build(yard)

    files = {"Dockerfile": DOCKERFILE, "app.txt": "hello"}
    other = await yard.build(files, programs=True, part="component:api")

    assert other.state == OutcomeState.SUCCEEDED
    assert list_reused(yard) == []


async def test_a_cache_that_cannot_be_reached_only_makes_a_build_slower(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_repository = yard.registry.open_repository
    async with OciClient("http://127.0.0.1:9", policy=RetryPolicy(give_up_s=0.0)) as nowhere:

        def choose(name: str) -> OciRepository:
            is_cache = name.startswith("cache/")
            return nowhere.open_repository(name) if is_cache else open_repository(name)

        monkeypatch.setattr(yard.registry, "open_repository", choose)
        await build(yard)

    log = yard.site.bench.read_log()
    assert log.count("the layer cache cannot be read, so all is built: cannot reach") == 1
    assert "layers are not kept for the next build: cannot reach" in log


async def test_a_secret_that_a_stage_writes_is_not_kept(yard: Yard) -> None:
    yard.secrets = {"npm_token": "s3cret-of-a-build"}
    dockerfile = """FROM scratch AS tools
COPY programs /
RUN --mount=type=secret,id=npm_token cat /run/secrets/npm_token > /npmrc && echo built > /made
FROM scratch
COPY --from=tools /made /made
"""
    files = {"Dockerfile": dockerfile}
    outcome = await yard.build(files, programs=True, part="component:web", secrets=["npm_token"])

    assert (outcome.state, outcome.message) == (OutcomeState.SUCCEEDED, "")
    assert "layers are not kept: one contains the secret `npm_token`" in yard.site.bench.read_log()
    assert not await has_cache(yard)


async def test_a_build_that_fails_keeps_nothing(yard: Yard) -> None:
    files = {"Dockerfile": 'FROM scratch\nCOPY programs /\nRUN ["/bin/sh", "-c", "exit 3"]\n'}

    outcome = await yard.build(files, programs=True, part="component:web")

    assert "exit 3" in outcome.message
    assert not await has_cache(yard)


async def has_cache(yard: Yard) -> bool:
    """Return whether anything was kept for the component."""
    url = f"{yard.own.registry}/v2/{CACHE}/tags/list"
    async with httpx.AsyncClient(trust_env=False) as client:
        return (await client.get(url)).status_code == httpx.codes.OK


@pytest.fixture
def store(yard: Yard, tmp_path: Path) -> LayerStore:
    """What a build reads and adds."""
    (tmp_path / "layers").mkdir()
    repository = yard.registry.open_repository(CACHE)
    return LayerStore(repository, tmp_path / "layers", lambda _: None)


async def test_the_way_to_the_cache_leads_nowhere_else(yard: Yard, store: LayerStore) -> None:
    built = (await build(yard)).outputs["digest"]

    async with (
        LayerProxy(store, SystemRandomness()) as proxy,
        httpx.AsyncClient(trust_env=False, base_url=f"http://{proxy.host}/v2") as client,
    ):
        stranger = await client.get("/")
        client.auth = (proxy.login.username, proxy.login.password.reveal())
        inside = await client.get("/")
        statuses = {
            (await client.request(method, path)).status_code
            for method, path in (
                ("GET", f"/apps/demo/manifests/{built}"),
                ("GET", f"/{CACHE}/tags/list"),
                ("PUT", "/apps/demo/manifests/latest"),
                ("POST", "/apps/demo/blobs/uploads/"),
                ("GET", f"/layers/%2e%2e/apps/demo/manifests/{built}"),
                ("GET", f"/layers/manifests/{built}"),
                ("GET", "/_catalog"),
            )
        }
        deleted = await client.delete(f"/layers/manifests/{built}")

    assert (stranger.status_code, inside.status_code) == (401, 200)
    assert statuses == {404}
    assert deleted.status_code == httpx.codes.METHOD_NOT_ALLOWED


async def test_content_that_is_not_what_its_digest_names_is_refused(store: LayerStore) -> None:
    async with (
        LayerProxy(store, SystemRandomness()) as proxy,
        httpx.AsyncClient(trust_env=False, base_url=f"http://{proxy.host}") as client,
    ):
        client.auth = (proxy.login.username, proxy.login.password.reveal())
        begun = await client.post("/v2/layers/blobs/uploads/")
        ended = await client.put(
            begun.headers["Location"], params={"digest": f"sha256:{0:064x}"}, content=b"evil"
        )

    assert ended.status_code == httpx.codes.BAD_REQUEST
    assert list(store.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("part", "platform", "name"),
    [
        ("component:web", "", "cache/apps/demo/web"),
        ("component:web", "linux/arm64", "cache/apps/demo/web/linux-arm64"),
        ("component:web_", "", "cache/apps/demo/x.a2a7447b6d123522685de5fefe7b0015"),
    ],
)
def test_each_component_and_platform_has_a_repository(part: str, platform: str, name: str) -> None:
    spec = BuildSpec.model_validate(
        {
            "build_id": "bui_" + "0" * 26,
            "part": part,
            "type": "image_build",
            "repository": "apps/demo",
            "source": {
                "type": "git",
                "url": "https://code.example/x",
                "ref": "main",
                "directory": ".",
            },
        }
    )

    assert name_cache(spec, platform) == name


def damage_blobs(folder: Path) -> int:
    """Change a byte in each layer that only the cache has."""
    count = 0
    for file in folder.rglob("*"):
        if file.is_file() and file.read_bytes()[:2] == b"\x1f\x8b":
            data = bytearray(file.read_bytes())
            data[len(data) // 2] ^= 0xFF
            file.write_bytes(data)
            count += 1
    return count
