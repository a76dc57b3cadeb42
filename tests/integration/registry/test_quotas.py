"""What an org may keep in the registry: counted while it arrives, released when it goes."""

import random
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest

from exclave.control.deps import Deps
from exclave.control.registry.gc import collect_org
from exclave.domain.quotas import Quotas, Stored
from exclave.storage.usage import Account, Amount, find_usage
from tests.integration.registry.kit import EMPTY, MANIFEST, Hub, digest_of, make_manifest, serve_hub

DATA = random.Random(5).randbytes(300_000)
LIMIT = 1_000_000


@pytest.fixture
async def small(shared_deps: Deps) -> AsyncIterator[Hub]:
    quotas = Quotas(registry_bytes=LIMIT, uploads=3, upload_bytes=700_000)
    async with serve_hub(replace(shared_deps, quotas=quotas)) as made:
        yield made


async def used(hub: Hub, kind: Stored = Stored.REGISTRY) -> Amount:
    return await hub.deps.db.read(lambda tx: find_usage(tx, Account(hub.org, kind)))


async def begin(hub: Hub) -> str:
    reply = await hub.call("POST", "blobs/uploads/")
    assert reply.status_code == 202, reply.text
    return str(reply.headers["Location"])


async def stream(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), 65_536):
        yield data[start : start + 65_536]


async def test_open_uploads_use_up_the_quota(small: Hub) -> None:
    locations = [await begin(small) for _ in range(3)]
    for location in locations:
        assert (await small.call("PATCH", location, content=DATA)).status_code == 202

    replies = [await small.call("PATCH", each, content=DATA) for each in locations]

    assert [reply.status_code for reply in replies] == [507, 507, 507]
    assert await used(small) == Amount(900_000, 0)


async def test_a_piece_beyond_the_quota_is_refused_and_leaves_nothing(small: Hub) -> None:
    first, second = await begin(small), await begin(small)
    for _ in range(2):
        assert (await small.call("PATCH", first, content=DATA)).status_code == 202
    assert (await small.call("PATCH", second, content=DATA)).status_code == 202

    announced = await small.call("PATCH", second, content=DATA)
    streamed = await small.call("PATCH", second, content=stream(DATA))

    for refused in (announced, streamed):
        assert refused.status_code == 507
        assert "registry" in refused.json()["errors"][0]["message"]
        assert "orgs usage" in refused.json()["errors"][0]["detail"]["hint"]
    assert await used(small) == Amount(900_000, 0)
    assert await small.count_keys() == 3


async def test_the_number_of_open_uploads_is_limited(small: Hub) -> None:
    locations = [await begin(small) for _ in range(3)]

    refused = await small.call("POST", "blobs/uploads/")
    await small.call("DELETE", locations[0])
    accepted = await small.call("POST", "blobs/uploads/")

    assert (refused.status_code, accepted.status_code) == (507, 202)
    assert await used(small, Stored.UPLOADS) == Amount(0, 3)


async def test_one_upload_has_a_limit_of_its_own(small: Hub) -> None:
    location = await begin(small)
    for _ in range(2):
        assert (await small.call("PATCH", location, content=DATA)).status_code == 202

    refused = await small.call("PATCH", location, content=DATA)
    streamed = await small.call("PATCH", location, content=stream(DATA))

    assert (refused.status_code, streamed.status_code) == (413, 413)
    assert await used(small) == Amount(600_000, 0)


async def test_a_cancelled_upload_frees_its_bytes(small: Hub) -> None:
    location = await begin(small)
    await small.call("PATCH", location, content=stream(DATA))

    await small.call("DELETE", location)

    assert await used(small) == Amount()
    assert await used(small, Stored.UPLOADS) == Amount()


async def test_a_blob_counts_once_however_often_it_is_pushed(small: Hub) -> None:
    for _ in range(5):
        reply = await small.call("POST", f"blobs/uploads/?digest={digest_of(DATA)}", content=DATA)
        assert reply.status_code == 201

    assert await used(small) == Amount(300_000, 1)
    assert await used(small, Stored.UPLOADS) == Amount()


async def test_a_wrong_digest_frees_what_was_sent(small: Hub) -> None:
    reply = await small.call("POST", f"blobs/uploads/?digest={digest_of(b'x')}", content=DATA)

    assert reply.status_code == 400
    assert await used(small) == Amount()


async def test_collected_content_frees_its_bytes(small: Hub) -> None:
    manifest = make_manifest(DATA)
    for blob in (DATA, EMPTY):
        await small.call("POST", f"blobs/uploads/?digest={digest_of(blob)}", content=blob)
    pushed = await small.call(
        "PUT",
        f"manifests/{digest_of(manifest)}",
        content=manifest,
        headers={"Content-Type": MANIFEST},
    )
    await small.call("PATCH", await begin(small), content=DATA)
    before = await used(small)

    small.clock.advance(timedelta(days=3).total_seconds())
    await collect_org(small.deps, small.org, timedelta(days=1))

    assert pushed.status_code == 201
    assert before == Amount(2 * len(DATA) + len(EMPTY) + len(manifest), 3)
    assert await used(small) == Amount()
    assert await used(small, Stored.UPLOADS) == Amount()


async def test_a_deleted_manifest_frees_its_bytes(small: Hub) -> None:
    manifest = make_manifest(DATA)
    for blob in (DATA, EMPTY):
        await small.call("POST", f"blobs/uploads/?digest={digest_of(blob)}", content=blob)
    headers = {"Content-Type": MANIFEST}
    for tag in ("one", "two"):
        await small.call("PUT", f"manifests/{tag}", content=manifest, headers=headers)
    before = (await used(small)).bytes

    await small.call("DELETE", f"manifests/{digest_of(manifest)}")

    assert before - (await used(small)).bytes == len(manifest)
