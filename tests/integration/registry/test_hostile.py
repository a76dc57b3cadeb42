"""Names, paths and bodies that mean harm get a refusal in the registry's words, and nothing else."""

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exclave.control.deps import ServerDeps
from exclave.storage.blobs.files import FileBlobs
from tests.integration.registry.kit import EMPTY, INDEX, Hub, digest_of, make_manifest, serve_hub
from tests.support.world import ManualClock, make_deps

CODES = {
    "BLOB_UNKNOWN", "BLOB_UPLOAD_INVALID", "BLOB_UPLOAD_UNKNOWN", "DIGEST_INVALID",
    "MANIFEST_BLOB_UNKNOWN", "MANIFEST_INVALID", "MANIFEST_UNKNOWN", "NAME_INVALID",
    "NAME_UNKNOWN", "SIZE_INVALID", "UNAUTHORIZED", "DENIED", "UNSUPPORTED", "TOOMANYREQUESTS",
}  # fmt: skip

NAMES = (
    "..", "../x", "a/../b", "A/b", "a//b", "/a", "a/", "a b", "a\0b", "é", "a/.", ".a", "a-/b",
    "a__", "_a", "x" * 300, "a/" * 130 + "a", "%2e%2e", "a;b", "a?b", "a#b", "-", "a..b", "a___b",
)  # fmt: skip


def spell(path: str) -> str:
    """Write a path so that the client leaves it as it is."""
    return quote(path, safe="/:").replace(".", "%2e")


@pytest.mark.parametrize("name", NAMES)
async def test_a_name_that_is_none_is_refused(hub: Hub, name: str) -> None:
    base = f"/v2/{hub.org}/{spell(name)}"
    for method, rest in (
        ("POST", "blobs/uploads/"),
        ("GET", "tags/list"),
        ("GET", f"blobs/{digest_of(b'')}"),
        ("PUT", "manifests/v1"),
        ("GET", "manifests/v1"),
    ):
        reply = await hub.call(method, f"{base}/{rest}", content=b"")
        code = reply.json()["errors"][0]["code"]
        assert (reply.status_code, code) == (400, "NAME_INVALID"), method

    assert await hub.count_keys() == 0


@pytest.mark.parametrize("name", ["", "apps", "demo"])
async def test_a_repository_lies_below_its_org(hub: Hub, name: str) -> None:
    for first in ("org_" + "0" * 26, "apps", "library"):
        path = "/".join(part for part in ("/v2", first, name) if part)
        reply = await hub.call("POST", f"{path}/blobs/uploads/")
        assert reply.status_code == 404


async def test_the_org_alone_is_no_repository(hub: Hub) -> None:
    reply = await hub.call("POST", f"/v2/{hub.org}/blobs/uploads/")

    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (404, "NAME_UNKNOWN")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "tags/list"), ("POST", "manifests/v1"), ("PATCH", "blobs/sha256:x"),
        ("GET", "blobs/uploads/"), ("DELETE", "tags/list"), ("TRACE", "manifests/v1"),
    ],
)  # fmt: skip
async def test_a_method_that_a_path_does_not_know(hub: Hub, method: str, path: str) -> None:
    reply = await hub.call(method, path)

    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (405, "UNSUPPORTED")


@pytest.mark.parametrize("path", ["/v2/_catalog", "/v2/x", "/v2/a/b/c", "/v2//", "/v2/token/x"])
async def test_a_path_that_is_none(hub: Hub, path: str) -> None:
    reply = await hub.call("GET", path)

    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (404, "UNSUPPORTED")


async def test_many_small_pieces_have_an_end(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exclave.control.registry.uploads.MAX_PARTS", 3)
    location = (await hub.call("POST", "blobs/uploads/")).headers["Location"]

    found = [(await hub.call("PATCH", location, content=b"x")).status_code for _ in range(5)]

    assert found == [202, 202, 202, 400, 400]


async def test_a_blob_has_a_largest_size(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exclave.control.registry.uploads.MAX_BLOB", 100)
    location = (await hub.call("POST", "blobs/uploads/")).headers["Location"]
    await hub.call("PATCH", location, content=b"x" * 60)

    reply = await hub.call("PATCH", location, content=b"x" * 41)

    assert (reply.status_code, reply.json()["errors"][0]["code"]) == (413, "SIZE_INVALID")
    assert (await hub.call("GET", location)).headers["Range"] == "0-59"
    assert await hub.count_keys() == 1


async def test_an_index_of_ten_thousand_manifests_is_checked(hub: Hub) -> None:
    document = await hub.publish(b"layer")
    known = {"mediaType": "x", "digest": digest_of(document), "size": len(document)}
    missing = {**known, "digest": digest_of(b"missing")}

    for listed, status in (([known] * 10_000, 201), ([*[known] * 9999, missing], 400)):
        index = json.dumps({"schemaVersion": 2, "manifests": listed}).encode()
        assert (await hub.put(index, kind=INDEX)).status_code == status


async def test_a_token_request_of_a_megabyte_is_refused(hub: Hub) -> None:
    reply = await hub.call("POST", "/v2/token", "", content=b"password=" + b"x" * (1 << 20))

    assert reply.status_code == 413


words = st.one_of(
    st.sampled_from(
        [
            "blobs",
            "uploads",
            "manifests",
            "tags",
            "list",
            "referrers",
            "v1",
            "apps",
            "demo",
            "..",
            "token",
            digest_of(b""),
            "sha256:x",
            "upl_" + "0" * 26,
            "{org}",
            "",
        ]
    ),
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=12),
)


@settings(
    max_examples=150, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
)
@given(
    method=st.sampled_from(["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"]),
    parts=st.lists(words, max_size=7),
    query=st.dictionaries(
        st.sampled_from(["digest", "mount", "from", "n", "last", "artifactType"]),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=3,
    ),
    headers=st.dictionaries(
        st.sampled_from(["Range", "Content-Range", "Content-Type"]),
        st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20), max_size=2,
    ),
    body=st.binary(max_size=50),
)  # fmt: skip
async def test_no_request_breaks_the_registry(
    fuzzed: Hub,
    method: str,
    parts: list[str],
    query: dict[str, str],
    headers: dict[str, str],
    body: bytes,
) -> None:
    named = [part.replace("{org}", fuzzed.org) for part in parts]
    path = "/v2/" + spell("/".join(named))

    reply = await fuzzed.call(method, path, params=query, headers=headers, content=body)

    assert reply.status_code < 500, reply.text
    if reply.status_code >= 400 and method != "HEAD" and reply.content:
        fault = reply.json()["errors"][0]
        assert fault["code"] in CODES


@pytest.fixture
async def fuzzed(tmp_path: Path) -> AsyncIterator[Hub]:
    deps: ServerDeps = make_deps(ManualClock(), blobs=FileBlobs(tmp_path / "blobs", inline=True))
    async with serve_hub(deps) as made:
        for data in (EMPTY, b"layer"):
            await made.push(data)
        await made.put(make_manifest(b"layer"), "v1")
        yield made
    deps.db.close()
    assert os.listdir(tmp_path) == ["blobs"]  # noqa: PTH208 - nothing was written beside it
