"""Content that is addressed by SHA-512 digests."""

import hashlib
import json
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from httpx import ASGITransport

from exclave.api.runner import build_runner_app
from exclave.client.oci.client import OciClient
from exclave.client.oci.documents import Manifest, read_document
from exclave.control.registry.gc import collect_org
from exclave.registry import build_registry_app
from tests.integration.registry.kit import EMPTY, EMPTY_TYPE, INDEX, MANIFEST, Hub, digest_of

DATA = random.Random(5).randbytes(300_000)


def sha512_of(data: bytes) -> str:
    return f"sha512:{hashlib.sha512(data).hexdigest()}"


def describe(data: bytes, kind: str = "application/octet-stream") -> dict[str, Any]:
    return {"mediaType": kind, "digest": sha512_of(data), "size": len(data)}


def make_manifest(*layers: bytes, **more: Any) -> bytes:
    document = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": describe(EMPTY, EMPTY_TYPE),
        "layers": [describe(layer) for layer in layers],
        **more,
    }
    return json.dumps(document).encode()


async def push(hub: Hub, data: bytes) -> str:
    digest = sha512_of(data)
    reply = await hub.call("POST", f"blobs/uploads/?digest={digest}", content=data)
    assert (reply.status_code, reply.headers["Docker-Content-Digest"]) == (201, digest)
    return digest


async def begin(hub: Hub) -> str:
    reply = await hub.call("POST", "blobs/uploads/?digest-algorithm=sha512")
    assert reply.status_code == 202
    return reply.headers["Location"]


async def test_a_blob_is_pushed_in_one_request(hub: Hub) -> None:
    digest = await push(hub, DATA)

    got = await hub.call("GET", f"blobs/{digest}")

    assert (got.status_code, got.content) == (200, DATA)
    assert got.headers["Docker-Content-Digest"] == digest
    assert (await hub.call("HEAD", f"blobs/{digest_of(DATA)}")).status_code == 404


@pytest.mark.parametrize("pieces", [1, 3])
async def test_a_blob_is_pushed_in_chunks(hub: Hub, pieces: int) -> None:
    location, size = await begin(hub), len(DATA) // pieces
    for number in range(pieces):
        piece = DATA[number * size : (number + 1) * size]
        place = {"Content-Range": f"{number * size}-{(number + 1) * size - 1}"}
        reply = await hub.call("PATCH", location, content=piece, headers=place)
        assert reply.status_code == 202

    reply = await hub.call("PUT", f"{location}?digest={sha512_of(DATA)}")

    assert reply.status_code == 201
    assert (await hub.call("GET", f"blobs/{sha512_of(DATA)}")).content == DATA
    assert await hub.count_keys() == 1


@pytest.mark.parametrize("pieces", [1, 2])
async def test_content_of_another_digest_is_refused_and_removed(hub: Hub, pieces: int) -> None:
    location = await begin(hub)
    for number in range(pieces - 1):
        await hub.call("PATCH", location, content=DATA[number : number + 9])

    reply = await hub.call("PUT", f"{location}?digest={sha512_of(b'other')}", content=DATA)

    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (400, "DIGEST_INVALID")
    assert await hub.count_keys() == 0


async def test_a_blob_is_mounted_from_another_repository(hub: Hub) -> None:
    digest = await push(hub, DATA)
    other = hub.name("apps/other")

    path = f"{other}/blobs/uploads/?mount={digest}&from={hub.org}/apps/demo"
    reply = await hub.call("POST", path)

    assert reply.status_code == 201
    assert (await hub.call("GET", f"{other}/blobs/{digest}")).content == DATA


async def test_a_manifest_has_the_digest_that_it_was_pushed_with(hub: Hub) -> None:
    for data in (EMPTY, DATA):
        await push(hub, data)
    document = make_manifest(DATA)
    digest = sha512_of(document)

    reply = await hub.put(document, digest)

    assert (reply.status_code, reply.headers["Docker-Content-Digest"]) == (201, digest)
    got = await hub.call("GET", f"manifests/{digest}")
    assert (got.content, got.headers["Docker-Content-Digest"]) == (document, digest)
    assert (await hub.call("GET", f"manifests/{digest_of(document)}")).status_code == 404
    assert (await hub.call("DELETE", f"manifests/{digest}")).status_code == 202
    assert (await hub.call("GET", f"manifests/{digest}")).status_code == 404


async def test_a_missing_manifest_is_unknown(hub: Hub) -> None:
    await push(hub, DATA)

    reply = await hub.call("GET", f"manifests/sha512:{'0' * 128}")

    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (404, "MANIFEST_UNKNOWN")


async def test_garbage_collection_follows_both_kinds_of_digests(hub: Hub) -> None:
    loose = await push(hub, b"nobody names this")
    for data in (EMPTY, DATA):
        await push(hub, data)
    child = make_manifest(DATA)
    await hub.put(child, sha512_of(child))
    index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [describe(child, MANIFEST)]}
    await hub.put(json.dumps(index).encode(), "latest", INDEX)
    note = make_manifest(subject=describe(child, MANIFEST))
    assert (await hub.put(note)).headers["OCI-Subject"] == sha512_of(child)

    hub.clock.advance(2 * 86400)
    await collect_org(hub.deps, hub.org, timedelta(days=1))

    token = await hub.make_token()
    assert (await hub.call("HEAD", f"blobs/{loose}", token)).status_code == 404
    assert (await hub.call("HEAD", f"blobs/{sha512_of(DATA)}", token)).status_code == 200
    listed = await hub.call("GET", f"referrers/{sha512_of(child)}", token)
    assert [each["digest"] for each in listed.json()["manifests"]] == [digest_of(note)]


async def test_our_client_verifies_them(hub: Hub, tmp_path: Path) -> None:
    for data in (EMPTY, DATA):
        await push(hub, data)
    document = make_manifest(DATA)
    await hub.put(document, sha512_of(document))

    async def get_token() -> str:
        return hub.token

    transport = ASGITransport(build_runner_app(hub.deps, registry_app=build_registry_app(hub.deps)))
    async with OciClient(f"http://registry.test/{hub.org}", get_token, transport) as client:
        manifest = await client.get_manifest("apps/demo", sha512_of(document))
        file = await client.pull_layer("apps/demo", sha512_of(document), tmp_path / "layer")

    assert read_document(Manifest, manifest).layers[0].digest == sha512_of(DATA)
    assert file.read_bytes() == DATA
