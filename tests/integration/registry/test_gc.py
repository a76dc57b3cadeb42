"""Garbage collection: what goes, what stays, and what happens when both happen at once."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import insert, select

from exclave.base.errors import Unavailable
from exclave.control.orgs import accounts
from exclave.control.registry.gc import EVERY, collect_due, collect_garbage, collect_org
from exclave.domain.identity import OrgId, QueueId
from exclave.storage import registry_gc
from exclave.storage.engine.database import Tx
from exclave.storage.tables.apps import builds, config_builds, configs
from exclave.storage.tables.identity import orgs
from exclave.storage.tables.installs import install_parts
from exclave.wire.registry import CollectGarbage, GarbageReport
from tests.integration.api.kit import enrol
from tests.integration.registry.kit import (
    EMPTY,
    INDEX,
    Hub,
    digest_of,
    make_app,
    make_index,
    make_manifest,
)
from tests.support.world import make_install, make_org

DAY = timedelta(days=1)


async def collect(hub: Hub, **rest: Any) -> GarbageReport:
    return await collect_org(hub.deps, hub.org, DAY, **rest)


async def exists(hub: Hub, reference: str) -> bool:
    kind = "blobs" if reference.startswith("blob ") else "manifests"
    reply = await hub.call(
        "HEAD", f"{kind}/{reference.removeprefix('blob ')}", await hub.make_token()
    )
    return reply.status_code == 200


def age(hub: Hub, days: float = 1.1) -> None:
    hub.clock.advance(days * 86400)


async def pin(hub: Hub, digest: str, provenance: str = "", *, state: str = "pinned") -> str:
    """Add a build of a digest that a config version pins, an install has, or nobody wants."""
    install = await make_install(hub.deps, hub.admin.user, hub.deps.ids.new("i").replace("_", "-"))
    config = await make_app(hub.deps, hub.org, hub.deps.ids.new("a").replace("_", "-"), install)
    build = hub.deps.ids.new("bul")

    def make(tx: Tx) -> None:
        row = tx.first(select(configs.c.app_id).where(configs.c.id == config))
        assert row is not None
        tx.run(
            insert(builds).values(
                org_id=hub.org,
                id=build,
                app_id=row.app_id,
                part="component:x",
                key="key",
                state="succeeded",
                source={},
                repository="apps/demo",
                digest=digest,
                commit="",
                size=1,
                provenance=provenance,
                error="",
                created_at=tx.now,
                created_by="x",
                finished_at=tx.now,
            )
        )
        if state == "pinned":
            tx.run(
                insert(config_builds).values(
                    org_id=hub.org, config_id=config, part="component:x", build_id=build
                )
            )
        if state == "installed":
            tx.run(
                insert(install_parts).values(
                    org_id=hub.org,
                    install_id=install,
                    part="component:x",
                    state="active",
                    drift="",
                    config_id=config,
                    build_id=build,
                    message="",
                    changed_at=tx.now,
                )
            )

    await hub.deps.db.write(make)
    return build


async def renew(hub: Hub) -> Hub:
    """The same registry with a token that is good today."""
    return Hub(hub.deps, hub.clock, hub.http, hub.admin, await hub.make_token(push=True))


async def test_what_nothing_names_goes_after_the_grace_time(hub: Hub) -> None:
    document = await hub.publish(b"layer")
    await hub.push(b"stray")

    young = await collect(hub)
    assert (young.manifests, young.blobs, await hub.count_keys()) == (0, 0, 3)
    age(hub)
    report = await collect(hub)

    assert (report.manifests, report.blobs, report.bytes) == (1, 3, 12)
    assert await hub.count_keys() == 0
    assert not await exists(hub, digest_of(document))
    again = await collect(hub)
    assert (again.manifests, again.blobs) == (0, 0)


async def test_a_dry_run_tells_the_same_and_removes_nothing(hub: Hub) -> None:
    await hub.publish(b"layer")
    await hub.publish(b"other", tag="kept")
    age(hub)

    told = await collect(hub, dry_run=True)
    assert await hub.count_keys() == 3
    done = await collect(hub)

    assert told.model_dump(exclude={"dry_run"}) == done.model_dump(exclude={"dry_run"})
    assert (told.dry_run, done.dry_run, done.manifests, done.blobs) == (True, False, 1, 1)


async def test_a_tag_keeps_all_that_it_leads_to(hub: Hub) -> None:
    one = await hub.publish(b"one")
    two = await hub.publish(b"two")
    await hub.put(make_index(one, two), "multi", INDEX)
    signature = await hub.publish(b"signature", subject=two)
    note = await hub.publish(b"note", subject=signature)
    age(hub)

    report = await collect(hub)

    assert (report.manifests, report.blobs) == (0, 0)
    for each in (one, two, signature, note):
        assert await exists(hub, digest_of(each))
    await (await renew(hub)).call("DELETE", "manifests/multi")
    report = await collect(hub)
    assert (report.manifests, report.blobs) == (5, 5)
    assert await hub.count_keys() == 0


@pytest.mark.parametrize("state", ["pinned", "installed"])
async def test_what_an_app_needs_stays_for_ever(hub: Hub, state: str) -> None:
    document = await hub.publish(b"layer")
    provenance = await hub.publish(b"provenance", subject=document)
    later = await hub.publish(b"signature", subject=document)
    stray = await hub.publish(b"stray")
    await pin(hub, digest_of(document), digest_of(provenance), state=state)
    age(hub, 300)

    report = await collect(hub)

    assert report.manifests == 1
    for each in (document, provenance, later):
        assert await exists(hub, digest_of(each))
    for data in (EMPTY, b"layer", b"provenance", b"signature"):
        assert await exists(hub, f"blob {digest_of(data)}")
    assert not await exists(hub, digest_of(stray))
    assert report.pinned == 7


async def test_what_is_pinned_cannot_be_deleted_by_anybody(hub: Hub) -> None:
    document = await hub.publish(b"layer", tag="v1")
    await pin(hub, digest_of(document))

    for path in (f"manifests/{digest_of(document)}", f"blobs/{digest_of(b'layer')}"):
        reply = await hub.call("DELETE", path)
        assert (reply.status_code, reply.json()["errors"][0]["code"]) == (403, "DENIED")

    assert (await hub.call("DELETE", "manifests/v1")).status_code == 202
    assert await exists(hub, digest_of(document))


async def test_a_build_that_nobody_pins_goes_and_is_not_taken_up_again(hub: Hub) -> None:
    document = await hub.publish(b"layer")
    build = await pin(hub, digest_of(document), state="unwanted")
    age(hub)

    assert (await collect(hub)).manifests == 1

    row = await hub.deps.db.read(
        lambda tx: tx.first(select(builds.c.state, builds.c.key).where(builds.c.id == build))
    )
    assert row is not None
    assert (row.state, row.key) == ("collected", "")


async def test_a_build_that_ended_lately_stays(hub: Hub) -> None:
    document = await hub.publish(b"layer")
    age(hub)
    await pin(hub, digest_of(document), state="unwanted")

    assert (await collect(hub)).manifests == 0
    assert await exists(hub, digest_of(document))


async def test_a_blob_of_two_repositories_stays_for_the_other(hub: Hub) -> None:
    await hub.publish(b"layer", tag="v1", repository="apps/other")
    await hub.publish(b"layer")
    age(hub)

    report = await collect(hub)

    assert (report.manifests, report.blobs) == (1, 0)
    path = f"{hub.name('apps/other')}/blobs/{digest_of(b'layer')}"
    assert (await hub.call("GET", path, await hub.make_token())).content == b"layer"
    assert not await exists(hub, f"blob {digest_of(b'layer')}")


async def test_a_pusher_that_finds_an_old_blob_keeps_it_alive(hub: Hub) -> None:
    await hub.push(EMPTY)
    await hub.push(b"layer")
    age(hub)
    today = await renew(hub)

    for data in (EMPTY, b"layer"):
        assert (await today.call("HEAD", f"blobs/{digest_of(data)}")).status_code == 200
    report = await collect(hub)

    assert report.blobs == 0
    assert (await today.put(make_manifest(b"layer"), "v1")).status_code == 201


async def test_a_manifest_pushed_again_is_young_again(hub: Hub) -> None:
    document = await hub.publish(b"layer")
    age(hub)
    await (await renew(hub)).put(document)

    assert (await collect(hub)).manifests == 0


async def test_uploads_that_were_left_lying_go(hub: Hub) -> None:
    location = (await hub.call("POST", "blobs/uploads/")).headers["Location"]
    await hub.call("PATCH", location, content=b"x" * 100)
    assert (await collect(hub)).uploads == 0
    age(hub)

    report = await collect(hub)

    assert (report.uploads, await hub.count_keys()) == (1, 0)
    assert (await (await renew(hub)).call("GET", location)).status_code == 404


async def test_bytes_that_no_row_knows_go_after_a_week(hub: Hub) -> None:
    await hub.publish(b"layer", tag="v1")
    await hub.deps.blobs.put(f"registry/{hub.org}/{hub.deps.ids.new('reg')}", b"lost")
    await hub.deps.blobs.put(f"registry/{hub.org}/readme", b"not ours")
    age(hub, 6)
    assert (await collect(hub)).orphans == 0
    age(hub, 2)

    report = await collect(hub)

    assert (report.orphans, await hub.count_keys()) == (1, 3)


async def test_pushes_and_collections_at_once_lose_nothing(hub: Hub) -> None:
    """Old content is pushed again while it is being collected; what was answered 201 is there."""
    for number in range(6):
        await hub.publish(b"layer %d" % number)
    age(hub)
    today = await renew(hub)

    async def push_again(number: int) -> None:
        document = await today.publish(b"layer %d" % number, tag=f"v{number}")
        reply = await today.call("GET", f"manifests/{digest_of(document)}")
        assert reply.status_code == 200

    await asyncio.gather(
        *(push_again(number) for number in range(6)), *(collect(hub) for _ in range(3))
    )
    await collect(hub)

    for number in range(6):
        reply = await today.call("GET", f"blobs/{digest_of(b'layer %d' % number)}")
        assert reply.content == b"layer %d" % number
    assert await hub.count_keys() == 7


async def test_an_admin_collects_on_demand_and_it_is_written_down(hub: Hub) -> None:
    await hub.publish(b"layer")
    age(hub)

    report = await collect_garbage(hub.deps, hub.admin.user, CollectGarbage(older_than_s=3600))

    assert report.manifests == 1


async def test_an_org_is_collected_six_hours_after_the_last_time_whoever_started_meanwhile(
    hub: Hub,
) -> None:
    await hub.publish(b"layer")
    age(hub)
    await hub.deps.db.write(lambda tx: registry_gc.set_collected(tx, hub.org, tx.now))

    await collect_due(hub.deps)
    assert await hub.count_keys() == 2
    hub.clock.advance(6 * 3600 + 1)
    await collect_due(hub.deps)

    assert await hub.count_keys() == 0


async def test_an_org_that_was_never_collected_is_due_at_once(hub: Hub) -> None:
    await hub.publish(b"layer")
    age(hub)

    await collect_due(hub.deps)

    assert await hub.count_keys() == 0


async def test_of_two_servers_one_collects_an_org(hub: Hub) -> None:
    before = hub.clock.now()

    claims = [
        await hub.deps.db.write(lambda tx: registry_gc.claim_collection(tx, hub.org, before))
        for _ in range(2)
    ]

    assert claims == [True, False]


async def test_an_org_that_cannot_be_collected_keeps_no_other_from_it(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    await hub.publish(b"layer")
    age(hub)
    other = await make_org(hub.deps, "other")
    list_keys = hub.deps.blobs.list_keys

    async def fail_once(prefix: str) -> list[str]:
        if hub.org in prefix:
            monkeypatch.setattr(hub.deps.blobs, "list_keys", list_keys)
            raise Unavailable("the object store is away")
        return await list_keys(prefix)

    monkeypatch.setattr(hub.deps.blobs, "list_keys", fail_once)
    await collect_due(hub.deps)

    assert hub.deps.chores.of("garbage").rows_failed == 1
    hub.clock.advance(15 * 60 + 1)
    assert await find_due_orgs(hub, other.org) == [hub.org]
    await collect_due(hub.deps)
    assert await find_due_orgs(hub, other.org) == []
    hub.clock.advance(6 * 3600 + 1)
    assert await find_due_orgs(hub, other.org) == [other.org, hub.org]


async def find_due_orgs(hub: Hub, other: OrgId) -> list[OrgId]:
    def find(tx: Tx) -> list[OrgId]:
        both = select(orgs).where(orgs.c.id.in_([hub.org, other]))
        rows = tx.all(both.order_by(orgs.c.collected_at))
        return [row.id for row in rows if row.collected_at < tx.now - EVERY]

    return await hub.deps.db.read(find)


async def make_builder(hub: Hub) -> Hub:
    """The same registry, as a new build runner sees it."""
    queue = (await accounts.show_org(hub.deps, hub.admin.user)).build_queue_id
    runner = await enrol(hub.deps, hub.admin.user, QueueId(queue))
    return Hub(hub.deps, hub.clock, hub.http, hub.admin, runner.token)


async def test_only_build_runners_push_layers_of_builds(hub: Hub) -> None:
    document = make_manifest()
    cache = hub.name("cache/apps/demo/web")

    refused = await hub.call("POST", f"{cache}/blobs/uploads/")
    builder = await make_builder(hub)
    await builder.push(EMPTY, "cache/apps/demo/web")
    taken = await builder.put(document, "a" * 64, repository="cache/apps/demo/web")
    changed = await hub.put(document, "a" * 64, repository="cache/apps/demo/web")

    assert (refused.status_code, taken.status_code, changed.status_code) == (403, 201, 403)


async def test_layers_of_builds_go_a_week_after_they_were_pushed(hub: Hub) -> None:
    builder = await make_builder(hub)
    old = await builder.publish(b"layer 1", tag="a" * 64, repository="cache/apps/demo/web")
    young = await builder.publish(b"layer 2", tag="b" * 64, repository="cache/apps/demo/web")
    kept = await hub.publish(b"layer 3", tag="v1")
    age(hub, days=6)
    builder = await make_builder(hub)
    await builder.put(young, "b" * 64, repository="cache/apps/demo/web")
    first = await collect(hub)
    age(hub)

    second = await collect(hub)

    there = (await renew(hub)).token
    cache = hub.name("cache/apps/demo/web")
    statuses = [
        (await hub.call("HEAD", f"{cache}/manifests/{reference}", there)).status_code
        for reference in ("a" * 64, digest_of(old), "b" * 64, digest_of(young))
    ]
    assert (first.manifests, second.manifests) == (0, 1)
    assert statuses == [404, 404, 200, 200]
    assert await exists(hub, digest_of(kept))
