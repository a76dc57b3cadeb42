"""Manifests, indexes, tags and referrers."""

import json
from typing import Any

import pytest

from tests.integration.registry.kit import (
    EMPTY,
    EMPTY_TYPE,
    INDEX,
    MANIFEST,
    Hub,
    descriptor,
    digest_of,
    make_index,
    make_manifest,
    write,
)

LAYER = b"a layer"


async def test_a_manifest_comes_back_byte_by_byte(hub: Hub) -> None:
    document = await hub.publish(LAYER, tag="v1", annotations={"a": "é"})
    digest = digest_of(document)

    for reference in ("v1", digest):
        got = await hub.call("GET", f"manifests/{reference}")
        head = await hub.call("HEAD", f"manifests/{reference}")
        assert (got.status_code, got.content) == (200, document)
        assert (head.status_code, head.content) == (200, b"")
        for reply in (got, head):
            assert reply.headers["Docker-Content-Digest"] == digest
            assert reply.headers["Content-Type"] == MANIFEST
            assert reply.headers["Content-Length"] == str(len(document))


async def test_a_push_tells_where_the_manifest_is(hub: Hub) -> None:
    document = await hub.publish(LAYER)
    digest = digest_of(document)

    reply = await hub.put(document, "again")

    assert reply.status_code == 201
    assert reply.headers["Location"] == f"{hub.name()}/manifests/{digest}"
    assert reply.headers["Docker-Content-Digest"] == digest
    assert "OCI-Subject" not in reply.headers


async def test_a_tag_moves_and_the_old_manifest_stays(hub: Hub) -> None:
    old = await hub.publish(LAYER, tag="latest")
    new = await hub.publish(LAYER, tag="latest", annotations={"n": "2"})

    assert (await hub.call("GET", "manifests/latest")).content == new
    assert (await hub.call("GET", f"manifests/{digest_of(old)}")).content == old


async def test_an_index_names_manifests_of_the_same_repository(hub: Hub) -> None:
    one = await hub.publish(LAYER)
    two = await hub.publish(LAYER, annotations={"n": "2"})
    index = make_index(one, two)

    assert (await hub.put(index, "multi", INDEX)).status_code == 201
    assert (await hub.call("GET", "manifests/multi")).headers["Content-Type"] == INDEX
    assert (await hub.put(make_index(b"other"), "bad", INDEX)).status_code == 400
    elsewhere = await hub.put(index, "multi", INDEX, repository="apps/other")
    assert elsewhere.json()["errors"][0]["code"] == "MANIFEST_BLOB_UNKNOWN"


async def test_what_a_manifest_names_must_be_in_its_repository(hub: Hub) -> None:
    await hub.push(EMPTY)
    await hub.push(LAYER, "apps/other")

    reply = await hub.put(make_manifest(LAYER), "v1")

    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (400, "MANIFEST_BLOB_UNKNOWN")
    assert (await hub.call("HEAD", "manifests/v1")).status_code == 404


async def test_a_layer_that_lies_elsewhere_need_not_be_there(hub: Hub) -> None:
    await hub.push(EMPTY)
    foreign = descriptor(b"x", "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip")
    document = {"schemaVersion": 2, "config": descriptor(EMPTY, EMPTY_TYPE)}

    with_place = write({**document, "layers": [{**foreign, "urls": ["https://example.com/x"]}]})
    without = write({**document, "layers": [foreign]})

    assert (await hub.put(with_place)).status_code == 201
    assert (await hub.put(without)).status_code == 400


GOOD = {"schemaVersion": 2, "config": descriptor(EMPTY, EMPTY_TYPE), "layers": [descriptor(LAYER)]}
WRONG: dict[str, bytes] = {
    "no json": b"{",
    "not utf-8": b'{"a": "\xff"}',
    "a list": b"[]",
    "nothing": b"",
    "a number": b"1",
    "another version": write({**GOOD, "schemaVersion": 1}),
    "no version": write({"config": GOOD["config"], "layers": []}),
    "no config": write({"schemaVersion": 2, "layers": []}),
    "no layers": write({"schemaVersion": 2, "config": GOOD["config"]}),
    "layers are a table": write({**GOOD, "layers": {}}),
    "both": write({**GOOD, "manifests": []}),
    "an index": make_index(),
    "another type": write({**GOOD, "mediaType": INDEX}),
    "a type that is a number": write({**GOOD, "mediaType": 5}),
    "a layer that is a text": write({**GOOD, "layers": ["x"]}),
    "a size that is a text": write({**GOOD, "layers": [{**descriptor(LAYER), "size": "7"}]}),
    "a size that is true": write({**GOOD, "layers": [{**descriptor(LAYER), "size": True}]}),
    "a negative size": write({**GOOD, "layers": [{**descriptor(LAYER), "size": -1}]}),
    "another size": write({**GOOD, "layers": [{**descriptor(LAYER), "size": 8}]}),
    "a digest that is none": write(
        {**GOOD, "layers": [{**descriptor(LAYER), "digest": "sha256:x"}]}
    ),
    "a digest with a path": write({**GOOD, "layers": [{**descriptor(LAYER), "digest": "../../x"}]}),
    "annotations of numbers": write({**GOOD, "annotations": {"a": 1}}),
    "a subject that is a text": write({**GOOD, "subject": "x"}),
    "a key twice": b'{"schemaVersion": 2, "schemaVersion": 2, "config": {}, "layers": []}',
    "NaN": b'{"schemaVersion": 2, "x": NaN}',
    "a NUL": write({**GOOD, "annotations": {"a": "\0"}}),
    "half a surrogate": write(GOOD)[:-1] + rb', "annotations": {"a": "\ud800"}}',
    "very deep": b'{"schemaVersion": 2, "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a bit deep": b'{"schemaVersion": 2, "x": ' + b"[" * 60 + b"]" * 60 + b"}",
    "a huge number": b'{"schemaVersion": 2, "x": ' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("what", WRONG)
async def test_a_document_that_is_no_manifest_is_refused(hub: Hub, what: str) -> None:
    await hub.push(EMPTY)
    await hub.push(LAYER)

    for reference in ("v1", ""):
        reply = await hub.put(WRONG[what], reference)
        assert (reply.status_code, reply.json()["errors"][0]["code"]) == (400, "MANIFEST_INVALID")
    assert (await hub.call("GET", "tags/list")).json()["tags"] == []


@pytest.mark.parametrize("kind", ["", "application/json", "text/html", "application/vnd.x+json"])
async def test_other_types_than_manifests_are_refused(hub: Hub, kind: str) -> None:
    await hub.push(EMPTY)
    await hub.push(LAYER)

    reply = await hub.put(write(GOOD), "v1", kind)

    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (400, "MANIFEST_INVALID")


async def test_parameters_of_the_type_are_ignored(hub: Hub) -> None:
    await hub.push(EMPTY)
    await hub.push(LAYER)

    assert (await hub.put(write(GOOD), "v1", f"{MANIFEST}; charset=utf-8")).status_code == 201
    assert (await hub.call("GET", "manifests/v1")).headers["Content-Type"] == MANIFEST


async def test_a_manifest_of_4_mib_and_not_a_byte_more(hub: Hub) -> None:
    await hub.push(EMPTY)
    await hub.push(LAYER)
    room = (4 << 20) - len(write({**GOOD, "annotations": {"a": ""}}))

    full = write({**GOOD, "annotations": {"a": "x" * room}})
    over = write({**GOOD, "annotations": {"a": "x" * (room + 1)}})

    assert (await hub.put(full, "full")).status_code == 201
    assert (await hub.call("GET", "manifests/full")).content == full
    reply = await hub.put(over, "over")
    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (413, "SIZE_INVALID")


async def test_a_reference_by_digest_must_be_the_digest(hub: Hub) -> None:
    document = await hub.publish(LAYER)

    other = (digest_of(b"other"), "sha256:x", "sha512:" + "0" * 128, "sha512:" + "0" * 64, "a:b")
    for reference in other:
        reply = await hub.put(document, reference)
        assert (reply.status_code, reply.json()["errors"][0]["code"]) == (400, "DIGEST_INVALID")


@pytest.mark.parametrize("tag", [".x", "-x", "x" * 129, "é", "a b", "%00", "a@b"])
async def test_a_tag_that_is_none_is_refused(hub: Hub, tag: str) -> None:
    document = await hub.publish(LAYER)

    assert (await hub.put(document, tag)).status_code == 400
    assert (await hub.call("GET", f"manifests/{tag}")).status_code == 404


async def test_tags_come_in_order_and_page_by_page(hub: Hub) -> None:
    document = await hub.publish(LAYER)
    for tag in ("v2", "V10", "v1", "latest", "Beta", "_x", "v1.0-rc_1"):
        await hub.put(document, tag)

    whole = (await hub.call("GET", "tags/list")).json()
    assert whole == {
        "name": f"{hub.org}/apps/demo",
        "tags": ["_x", "Beta", "latest", "v1", "v1.0-rc_1", "V10", "v2"],
    }
    found: list[str] = []
    path = "tags/list?n=3"
    while path:
        reply = await hub.call("GET", path)
        found += reply.json()["tags"]
        path = reply.links.get("next", {}).get("url", "")
    assert found == whole["tags"]
    after = await hub.call("GET", "tags/list?last=v1&n=100")
    assert (after.json()["tags"], "Link" in after.headers) == (["v1.0-rc_1", "V10", "v2"], False)
    none = await hub.call("GET", "tags/list?n=0")
    assert (none.json()["tags"], "Link" in none.headers) == ([], False)


@pytest.mark.parametrize("query", ["n=x", "n=-1", "n=1e3", "n=9999999999", "last=%00", "n=", "n=²"])
async def test_a_page_that_makes_no_sense_is_refused(hub: Hub, query: str) -> None:
    await hub.publish(LAYER)

    assert (await hub.call("GET", f"tags/list?{query}")).status_code == 400


async def test_a_repository_that_is_not_there_has_no_tags(hub: Hub) -> None:
    reply = await hub.call("GET", "tags/list")

    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (404, "NAME_UNKNOWN")


async def refer(hub: Hub, subject: bytes, kind: str = "", **more: Any) -> bytes:
    fields = {"artifactType": kind, **more} if kind else more
    return await hub.publish(LAYER, subject=subject, **fields)


async def list_referrers(hub: Hub, subject: bytes, query: str = "") -> list[dict[str, Any]]:
    reply = await hub.call("GET", f"referrers/{digest_of(subject)}{query}")
    assert (reply.status_code, reply.headers["Content-Type"]) == (200, INDEX)
    document = reply.json()
    assert (document["schemaVersion"], document["mediaType"]) == (2, INDEX)
    found: list[dict[str, Any]] = document["manifests"]
    return found


async def test_referrers_are_listed_with_their_type_and_notes(hub: Hub) -> None:
    subject = await hub.publish(LAYER)
    signature = await refer(hub, subject, "application/sig", annotations={"by": "me"})
    plain = await refer(hub, subject, annotations={"n": "2"})

    found = {each["digest"]: each for each in await list_referrers(hub, subject)}

    assert found == {
        digest_of(signature): {
            **descriptor(signature, MANIFEST),
            "artifactType": "application/sig",
            "annotations": {"by": "me"},
        },
        digest_of(plain): {
            **descriptor(plain, MANIFEST),
            "artifactType": EMPTY_TYPE,
            "annotations": {"n": "2"},
        },
    }


async def test_a_push_with_a_subject_says_so_even_before_the_subject_is_there(hub: Hub) -> None:
    subject = make_manifest(LAYER, annotations={"later": "yes"})
    document = make_manifest(LAYER, subject=subject)
    for data in (EMPTY, LAYER):
        await hub.push(data)

    reply = await hub.put(document)

    assert reply.headers["OCI-Subject"] == digest_of(subject)
    assert [each["digest"] for each in await list_referrers(hub, subject)] == [digest_of(document)]


async def test_referrers_can_be_filtered_by_type(hub: Hub) -> None:
    subject = await hub.publish(LAYER)
    signature = await refer(hub, subject, "application/sig")
    await refer(hub, subject, "application/sbom")

    reply = await hub.call("GET", f"referrers/{digest_of(subject)}?artifactType=application/sig")

    assert reply.headers["OCI-Filters-Applied"] == "artifactType"
    assert [each["digest"] for each in reply.json()["manifests"]] == [digest_of(signature)]
    assert await list_referrers(hub, subject, "?artifactType=none") == []


async def test_an_index_refers_without_a_type(hub: Hub) -> None:
    subject = await hub.publish(LAYER)
    index = make_index(subject, subject=descriptor(subject, MANIFEST))
    reply = await hub.put(index, kind=INDEX)

    assert reply.headers["OCI-Subject"] == digest_of(subject)
    assert await list_referrers(hub, subject) == [descriptor(index, INDEX)]


async def test_many_referrers_come_page_by_page(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exclave.control.registry.manifests.MOST_REFERRERS", 2)
    subject = await hub.publish(LAYER)
    made = {digest_of(await refer(hub, subject, annotations={"n": str(n)})) for n in range(5)}

    found: list[str] = []
    path = f"referrers/{digest_of(subject)}"
    while path:
        reply = await hub.call("GET", path)
        found += [each["digest"] for each in reply.json()["manifests"]]
        path = reply.links.get("next", {}).get("url", "")

    assert (len(found), set(found)) == (5, made)


async def test_nothing_refers_to_what_is_not_there(hub: Hub) -> None:
    assert await list_referrers(hub, b"nothing") == []
    assert (await hub.call("GET", "referrers/x")).status_code == 400
    assert (
        await hub.call("GET", f"referrers/{digest_of(b'x')}?artifactType=%00")
    ).status_code == 400


async def test_a_deleted_tag_leaves_the_manifest(hub: Hub) -> None:
    document = await hub.publish(LAYER, tag="v1")

    assert (await hub.call("DELETE", "manifests/v1")).status_code == 202
    assert (await hub.call("DELETE", "manifests/v1")).status_code == 404
    assert (await hub.call("GET", f"manifests/{digest_of(document)}")).status_code == 200


async def test_a_deleted_manifest_takes_its_tags_along(hub: Hub) -> None:
    document = await hub.publish(LAYER, tag="v1")
    await hub.put(document, "v2")
    signature = await refer(hub, document)

    assert (await hub.call("DELETE", f"manifests/{digest_of(document)}")).status_code == 202

    for reference in ("v1", "v2", digest_of(document)):
        reply = await hub.call("GET", f"manifests/{reference}")
        assert (reply.status_code, reply.json()["errors"][0]["code"]) == (404, "MANIFEST_UNKNOWN")
    assert len(await list_referrers(hub, document)) == 1
    assert (await hub.call("DELETE", f"manifests/{digest_of(signature)}")).status_code == 202
    assert await list_referrers(hub, document) == []


async def test_a_document_may_be_pushed_again_after_it_was_deleted(hub: Hub) -> None:
    document = await hub.publish(LAYER, tag="v1")
    await hub.call("DELETE", f"manifests/{digest_of(document)}")

    assert (await hub.put(document, "v1")).status_code == 201
    assert json.loads((await hub.call("GET", "manifests/v1")).content)["schemaVersion"] == 2
