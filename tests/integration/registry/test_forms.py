"""Every form of image and artifact that the specification knows, with both kinds of digests.

Each is pushed, found, pulled, referred to and deleted, as the conformance suite of the specification
does it. That suite itself cannot be had from a package registry.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.integration.registry.kit import EMPTY, EMPTY_TYPE, INDEX, MANIFEST, Hub

LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
FOREIGN = "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip"
CONFIG = "application/vnd.oci.image.config.v1+json"
THING = "application/vnd.example.thing.v1"
ALGORITHMS = ("sha256", "sha512")


class Content:
    """Blobs and documents whose digests are of one algorithm, in the order of their pushes."""

    def __init__(self, algorithm: str) -> None:
        self.algorithm = algorithm
        self.blobs: list[bytes] = []
        self.documents: list[tuple[bytes, str]] = []

    def digest(self, data: bytes) -> str:
        return f"{self.algorithm}:{hashlib.new(self.algorithm, data).hexdigest()}"

    def describe(self, data: bytes, kind: str, **more: Any) -> dict[str, Any]:
        return {"mediaType": kind, "digest": self.digest(data), "size": len(data), **more}

    def add_blob(self, data: bytes, kind: str) -> dict[str, Any]:
        self.blobs.append(data)
        return self.describe(data, kind)

    def add(self, kind: str, document: Mapping[str, Any]) -> dict[str, Any]:
        data = json.dumps({"schemaVersion": 2, "mediaType": kind, **document}).encode()
        self.documents.append((data, kind))
        return self.describe(data, kind)

    def add_image(self, seed: str, **more: Any) -> dict[str, Any]:
        config = self.add_blob(json.dumps({"os": "linux", "architecture": seed}).encode(), CONFIG)
        layers = [self.add_blob(f"{seed} {number}".encode(), LAYER) for number in range(2)]
        return self.add(MANIFEST, {"config": config, "layers": layers, **more})

    def add_artifact(self, *layers: dict[str, Any], **more: Any) -> dict[str, Any]:
        config = self.add_blob(EMPTY, EMPTY_TYPE)
        return self.add(
            MANIFEST, {"artifactType": THING, "config": config, "layers": layers, **more}
        )

    def add_index(self, seed: str, **more: Any) -> dict[str, Any]:
        images = [
            {**self.add_image(f"{seed}{name}"), "platform": {"os": "linux", "architecture": name}}
            for name in ("amd64", "arm64")
        ]
        return self.add(INDEX, {"manifests": images, **more})


def add_nested(content: Content) -> object:
    inner = [content.add_index(seed) for seed in ("a", "b")]
    return content.add(INDEX, {"manifests": inner})


def add_inline(content: Content) -> object:
    data = base64.b64encode(b"inline").decode()
    return content.add_artifact({**content.add_blob(b"inline", THING), "data": data})


def add_foreign(content: Content) -> object:
    config = content.add_blob(b'{"os": "linux"}', CONFIG)
    elsewhere = content.describe(b"elsewhere", FOREIGN, urls=["https://example.com/layer"])
    layers = [elsewhere, content.add_blob(b"here", LAYER)]
    return content.add(MANIFEST, {"config": config, "layers": layers})


def add_unknown_fields(content: Content) -> object:
    return content.add_index("x", **{"org.example.field": {"a": [1, None]}})


def add_large(content: Content) -> object:
    return content.add_image("large", annotations={str(n): "A" * 10_000 for n in range(390)})


FORMS: dict[str, Callable[[Content], object]] = {
    "image": lambda content: content.add_image("amd64"),
    "image-without-layers": lambda content: content.add(
        MANIFEST, {"config": content.add_blob(b"{ }", CONFIG), "layers": []}
    ),
    "large-manifest": add_large,
    "index": lambda content: content.add_index("x"),
    "nested-index": add_nested,
    "empty-index": lambda content: content.add(INDEX, {"manifests": []}),
    "artifact": lambda content: content.add_artifact(content.add_blob(b"thing", THING)),
    "artifact-without-layers": lambda content: content.add_artifact(
        content.describe(EMPTY, EMPTY_TYPE)
    ),
    "artifact-index": lambda content: content.add_index("x", artifactType=THING),
    "inline-data": add_inline,
    "foreign-layers": add_foreign,
    "unknown-fields": add_unknown_fields,
}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("form", list(FORMS))
async def test_a_form_is_pushed_found_referred_to_and_deleted(
    hub: Hub, form: str, algorithm: str
) -> None:
    content = Content(algorithm)
    FORMS[form](content)
    top, kind = content.documents[-1]
    subject = content.describe(top, kind)
    content.add_artifact(content.add_blob(b"note", THING), subject=subject, annotations={"a": "b"})
    content.add(INDEX, {"manifests": [], "artifactType": THING, "subject": subject})

    await push_all(hub, content)

    await expect_all(hub, content)
    listed = (await hub.call("GET", f"referrers/{subject['digest']}")).json()["manifests"]
    referrers = {content.digest(document) for document, _ in content.documents[-2:]}
    assert {each["digest"] for each in listed} == referrers
    assert {each["artifactType"] for each in listed} == {THING}
    await delete_all(hub, content)


async def push_all(hub: Hub, content: Content) -> None:
    for data in content.blobs:
        path = f"blobs/uploads/?digest={content.digest(data)}"
        assert (await hub.call("POST", path, content=data)).status_code == 201
    for document, kind in content.documents:
        digest = content.digest(document)
        pushed = await hub.put(document, digest, kind)
        assert (pushed.status_code, pushed.headers["Docker-Content-Digest"]) == (201, digest)


async def expect_all(hub: Hub, content: Content) -> None:
    for document, kind in content.documents:
        path = f"manifests/{content.digest(document)}"
        head, got = await hub.call("HEAD", path), await hub.call("GET", path)
        assert (head.status_code, head.headers["Content-Length"]) == (200, str(len(document)))
        assert (got.content, got.headers["Content-Type"]) == (document, kind)
    for data in content.blobs:
        path = f"blobs/{content.digest(data)}"
        head, got = await hub.call("HEAD", path), await hub.call("GET", path)
        assert (head.status_code, head.headers["Content-Length"]) == (200, str(len(data)))
        assert got.content == data


async def delete_all(hub: Hub, content: Content) -> None:
    for document, _ in reversed(content.documents):
        path = f"manifests/{content.digest(document)}"
        assert (await hub.call("DELETE", path)).status_code == 202
        assert (await hub.call("GET", path)).status_code == 404
    for data in set(content.blobs):
        path = f"blobs/{content.digest(data)}"
        assert (await hub.call("DELETE", path)).status_code == 202
        assert (await hub.call("HEAD", path)).status_code == 404


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_what_was_never_pushed_is_missing_and_not_malformed(hub: Hub, algorithm: str) -> None:
    content = Content(algorithm)
    await hub.push(b"so that there is a repository")
    missing = content.digest(b"never pushed")

    blob, head, manifest, upload, mount = [
        await hub.call("GET", f"blobs/{missing}"),
        await hub.call("HEAD", f"blobs/{missing}"),
        await hub.call("GET", f"manifests/{missing}"),
        await hub.call("DELETE", f"blobs/{missing}"),
        await hub.call("POST", f"blobs/uploads/?mount={missing}&from={hub.org}/apps/other"),
    ]

    assert (blob.status_code, blob.json()["errors"][0]["code"]) == (404, "BLOB_UNKNOWN")
    assert head.status_code == upload.status_code == 404
    assert (manifest.status_code, manifest.json()["errors"][0]["code"]) == (404, "MANIFEST_UNKNOWN")
    assert (mount.status_code, "Location" in mount.headers) == (202, True)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
async def test_a_manifest_of_another_digest_is_refused(hub: Hub, algorithm: str) -> None:
    content = Content(algorithm)
    content.add_artifact(content.add_blob(b"thing", THING))
    digest = content.digest(content.documents[0][0])
    await push_all(hub, content)

    refused = await hub.put(content.documents[0][0] + b"  ", digest)

    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (400, "DIGEST_INVALID")
