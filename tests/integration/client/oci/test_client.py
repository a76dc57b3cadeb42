"""Our client against our registry: deterministic pushes, checked pulls, cuts on the way."""

import json
import os
import random
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from exclave.api.runner import build_runner_app
from exclave.base.errors import InvalidInput, Problem
from exclave.base.ids import SeededRandomness
from exclave.base.secrets import Secret
from exclave.client.oci.client import Login, OciClient
from exclave.client.oci.documents import CorruptContent
from exclave.client.problems import RemoteProblem, UnexpectedReply, Unreachable
from exclave.client.retry import RetryPolicy
from exclave.control.orgs import accounts
from exclave.registry import build_registry_app
from tests.integration.api.kit import enrol
from tests.integration.registry.kit import Hub, digest_of, make_manifest, serve_hub
from tests.support.world import ManualClock, make_deps

TYPE = "application/vnd.exclave.terraform_module.v1"
LAYER_TYPE = "application/vnd.exclave.source.v1.tar"
BIG = random.Random(6).randbytes(1 << 20) * 12
POLICY = RetryPolicy(first_s=0.1, longest_s=1.0, give_up_s=60.0)


@pytest.fixture
async def hub() -> AsyncIterator[Hub]:
    deps = make_deps(ManualClock())
    async with serve_hub(deps) as made:
        yield made
    deps.db.close()


class Flaky(httpx.AsyncBaseTransport):
    """The registry behind a network that fails as told: before, within, or after a request."""

    def __init__(self, hub: Hub) -> None:
        app = build_runner_app(hub.deps, registry_app=build_registry_app(hub.deps))
        self._inner = httpx.ASGITransport(app)
        self.cuts: dict[tuple[str, str], list[int]] = {}
        self.seen: list[str] = []
        self.headers: list[httpx.Headers] = []

    def cut(self, method: str, part: str, *after: int) -> None:
        """Cut requests whose path has this part after so many bytes: sent ones, or answered."""
        self.cuts[method, part] = list(after)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(f"{request.method} {request.url.path.rpartition('/')[0][-12:]}")
        self.headers.append(request.headers)
        after = self._find_cut(request)
        if after is not None and request.method in {"PATCH", "PUT"}:
            await self._send_part(request, after)
            raise httpx.WriteError("cut")
        response = await self._inner.handle_async_request(request)
        if after is not None:
            body = await response.aread()
            return httpx.Response(
                response.status_code, headers=response.headers, stream=Cut(body[:after])
            )
        return response

    def _find_cut(self, request: httpx.Request) -> int | None:
        for (method, part), left in self.cuts.items():
            if request.method == method and part in request.url.path and left:
                return left.pop(0)
        return None

    async def _send_part(self, request: httpx.Request, after: int) -> None:
        """Let a part of the body arrive, as if the connection broke then."""
        assert isinstance(request.stream, httpx.AsyncByteStream)
        data = b"".join([chunk async for chunk in request.stream])[:after]
        headers = {
            key: value
            for key, value in request.headers.items()
            if key not in {"content-length", "content-range"}
        }
        part = httpx.Request("PATCH", request.url, headers=headers, content=data)
        await self._inner.handle_async_request(part)


class Cut(httpx.AsyncByteStream):
    def __init__(self, data: bytes) -> None:
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data
        raise httpx.ReadError("cut")


def connect(hub: Hub, transport: httpx.AsyncBaseTransport | None = None) -> OciClient:
    async def token() -> str:
        return hub.token

    return OciClient(
        f"http://exclave.test/{hub.org}",
        token,
        transport or Flaky(hub),
        policy=POLICY,
        clock=hub.clock,
        randomness=SeededRandomness(1),
    )


async def push(client: OciClient, file: Path, **rest: object) -> str:
    made = await client.push_artifact(
        "apps/demo",
        artifact_type=TYPE,
        layer=file,
        layer_type=LAYER_TYPE,
        annotations={"part": "component:db"},
        **rest,  # type: ignore[arg-type]
    )
    return made.digest


async def test_the_same_file_is_the_same_artifact(hub: Hub, tmp_path: Path) -> None:
    file = tmp_path / "layer"
    file.write_bytes(b"terraform")
    async with connect(hub) as client:
        first = await push(client, file)
        second = await push(client, file)

        manifest = json.loads(await client.get_manifest("apps/demo", first))
        pulled = await client.pull_layer("apps/demo", first, tmp_path / "out")

    assert first == second
    assert (manifest["artifactType"], manifest["layers"][0]["mediaType"]) == (TYPE, LAYER_TYPE)
    assert manifest["config"]["mediaType"] == "application/vnd.oci.empty.v1+json"
    assert pulled.read_bytes() == b"terraform"
    assert sorted(os.listdir(tmp_path)) == ["layer", "out"]  # noqa: PTH208


@pytest.mark.parametrize("data", [b"", b"x", BIG], ids=["empty", "small", "big"])
async def test_files_of_any_size(hub: Hub, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "layer").write_bytes(data)
    async with connect(hub) as client:
        digest = await push(client, tmp_path / "layer", tag="v1")
        await client.pull_layer("apps/demo", digest, tmp_path / "out")

    assert (tmp_path / "out").read_bytes() == data


async def test_provenance_is_found_as_a_referrer(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "layer").write_bytes(b"module")
    (tmp_path / "proof").write_bytes(b"statement")
    async with connect(hub) as client:
        made = await client.push_artifact(
            "apps/demo",
            artifact_type=TYPE,
            layer=tmp_path / "layer",
            layer_type=LAYER_TYPE,
            annotations={},
        )
        proof = await client.push_artifact(
            "apps/demo",
            artifact_type="application/vnd.in-toto+json",
            layer=tmp_path / "proof",
            layer_type="application/json",
            annotations={"a": "b"},
            subject=made,
        )

        found = await client.list_referrers("apps/demo", made.digest)
        typed = await client.list_referrers("apps/demo", made.digest, "application/x")

    assert [(each.digest, each.artifactType) for each in found] == [
        (proof.digest, "application/vnd.in-toto+json")
    ]
    assert (found[0].annotations, typed) == ({"a": "b"}, [])


async def test_what_is_there_is_not_sent_again(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "layer").write_bytes(BIG)
    network = Flaky(hub)
    async with connect(hub, network) as client:
        await push(client, tmp_path / "layer")
        network.seen.clear()
        await push(client, tmp_path / "layer")

    assert {each.split()[0] for each in network.seen} == {"HEAD", "PUT"}


async def test_an_upload_goes_on_where_it_was_cut(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "layer").write_bytes(BIG)
    network = Flaky(hub)
    network.cut("PATCH", "/uploads/", 5_000_000, 3_000_000)
    async with connect(hub, network) as client:
        digest = await push(client, tmp_path / "layer")
        await client.pull_layer("apps/demo", digest, tmp_path / "out")

    sent = [each.get("Content-Range") for each in network.headers if "Content-Range" in each]
    assert sent == [f"{start}-{len(BIG) - 1}" for start in (0, 5_000_000, 8_000_000)]
    assert (tmp_path / "out").read_bytes() == BIG


@pytest.mark.parametrize("arrived", [1, 3, 4])
async def test_a_small_upload_that_was_cut_begins_anew(
    hub: Hub, tmp_path: Path, arrived: int
) -> None:
    """The server may have died with all of it, or some of it, under the old upload."""
    (tmp_path / "small").write_bytes(b"four")
    network = Flaky(hub)
    network.cut("PUT", "/uploads/", *[arrived] * 3)
    async with connect(hub, network) as client:
        digest = await push(client, tmp_path / "small")
        await client.pull_layer("apps/demo", digest, tmp_path / "out")

    assert (tmp_path / "out").read_bytes() == b"four"


async def test_a_download_goes_on_where_it_was_cut(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "layer").write_bytes(BIG)
    network = Flaky(hub)
    async with connect(hub, network) as client:
        digest = await push(client, tmp_path / "layer")
        network.headers.clear()
        network.cut("GET", "/blobs/", 4 << 20, 0, 2 << 20)
        await client.pull_layer("apps/demo", digest, tmp_path / "out")

    asked = [each["Range"] for each in network.headers if "Range" in each]
    assert asked == [f"bytes={mib << 20}-" for mib in (4, 4, 6)]
    assert (tmp_path / "out").read_bytes() == BIG


async def test_content_that_was_changed_is_refused_and_not_kept(hub: Hub, tmp_path: Path) -> None:
    (tmp_path / "layer").write_bytes(b"good")
    async with connect(hub) as client:
        digest = await push(client, tmp_path / "layer")
        for key in await hub.deps.blobs.list_keys():
            if await hub.deps.blobs.get(key) == b"good":
                await hub.deps.blobs.put(key, b"evil")

        with pytest.raises(CorruptContent, match="something else"):
            await client.pull_layer("apps/demo", digest, tmp_path / "out")

    assert sorted(os.listdir(tmp_path)) == ["layer"]  # noqa: PTH208


async def test_a_manifest_that_was_changed_is_refused(tmp_path: Path) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=make_manifest(b"evil"))

    async with OciClient("https://r.test/x", None, httpx.MockTransport(answer)) as client:
        with pytest.raises(CorruptContent):
            await client.pull_layer("apps/demo", digest_of(b"good"), tmp_path / "out")


async def test_an_artifact_of_several_layers_is_none_of_ours(hub: Hub, tmp_path: Path) -> None:
    document = await hub.publish(b"one", b"two")
    async with connect(hub) as client:
        with pytest.raises(UnexpectedReply, match="2 layers instead of one"):
            await client.pull_layer("apps/demo", digest_of(document), tmp_path / "out")


async def test_a_runner_pushes_with_its_own_token(hub: Hub, tmp_path: Path) -> None:
    user = hub.admin.user
    queue = (await accounts.show_org(hub.deps, user)).build_queue_id
    runner = await enrol(hub.deps, user, queue)  # type: ignore[arg-type]
    (tmp_path / "layer").write_bytes(b"module")

    async def token() -> str:
        return runner.token

    client = OciClient(f"http://exclave.test/{hub.org}", token, Flaky(hub))
    async with client:
        digest = await push(client, tmp_path / "layer")
        await client.pull_layer("apps/demo", digest, tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"module"


async def test_a_login_is_exchanged_for_a_token_when_the_registry_asks(
    hub: Hub, tmp_path: Path
) -> None:
    (tmp_path / "layer").write_bytes(b"module")
    network = Flaky(hub)
    login = Login("exclave", Secret(hub.token))
    noted: list[Secret] = []
    client = OciClient(
        f"http://exclave.test/{hub.org}", None, network, login=login, note_token=noted.append
    )
    async with client:
        digest = await push(client, tmp_path / "layer")
        await client.pull_layer("apps/demo", digest, tmp_path / "out")

    assert (tmp_path / "out").read_bytes() == b"module"
    kinds = {each.get("Authorization", "none").split()[0] for each in network.headers}
    assert kinds == {"none", "Basic", "Bearer"}
    assert noted
    assert all(len(one.reveal()) > 20 for one in noted)


async def test_a_refusal_tells_what_the_registry_said(hub: Hub, tmp_path: Path) -> None:
    async with connect(hub) as client:
        with pytest.raises(RemoteProblem, match="there is no such repository") as caught:
            await client.get_manifest("apps/none", "v1")
    assert (caught.value.status, caught.value.code) == (404, "name_unknown")

    async def wrong() -> str:
        return "xcl_" + "0" * 52

    async with OciClient(f"http://exclave.test/{hub.org}", wrong, Flaky(hub)) as client:
        with pytest.raises(RemoteProblem) as caught:
            await client.get_manifest("apps/demo", "v1")
    assert caught.value.status == 401


async def test_a_registry_out_of_reach_is_tried_for_a_while(hub: Hub) -> None:
    def fail(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    began = hub.clock.monotonic()
    async with connect(hub, httpx.MockTransport(fail)) as client:
        with pytest.raises(Unreachable):
            await client.get_manifest("apps/demo", "v1")
    assert 30 < hub.clock.monotonic() - began <= 60


@pytest.mark.parametrize("url", ["", "registry.example.com", "ftp://x/y", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        OciClient(url)


async def test_credentials_are_not_sent_to_a_token_server_without_tls() -> None:
    challenge = 'Bearer realm="http://tokens.test/t",service="s"'

    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.host == "r.test"
        return httpx.Response(401, headers={"WWW-Authenticate": challenge})

    async with OciClient("https://r.test/x", None, httpx.MockTransport(answer)) as client:
        with pytest.raises(Problem, match="not safe"):
            await client.get_manifest("apps/demo", "v1")
