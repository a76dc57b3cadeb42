"""What is read about an image in a real registry."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from exclave.client.oci.client import OciClient
from exclave.client.oci.repository import OciRepository
from exclave.client.retry import RetryPolicy
from exclave.runner.images.graph import read_graph
from exclave.runner.images.metadata import read_metadata
from tests.support.images import make_image, make_index, make_layer, make_referrer, push_image

RUNTIME = {
    "created": "2026-01-02T03:04:05Z",
    "config": {
        "Labels": {"team": "a"},
        "User": "1000",
        "Entrypoint": ["/app"],
        "ExposedPorts": {"80/tcp": {}},
    },
}


@pytest.fixture
async def repository(registry: str, request: pytest.FixtureRequest) -> AsyncIterator[OciRepository]:
    policy = RetryPolicy(first_s=0.01, longest_s=0.05, give_up_s=5.0)
    async with OciClient(registry, None, httpx.AsyncHTTPTransport(), policy=policy) as client:
        yield client.open_repository(request.node.name.replace("_", "-"))


async def test_an_image_for_one_platform_is_described_by_its_config(
    repository: OciRepository, tmp_path: Path
) -> None:
    layer = make_layer(1)
    image = make_image(layer, config=RUNTIME)
    await push_image(repository, image, tmp_path)

    found = await read_metadata(repository, await read_graph(repository, image.digest), tmp_path)

    assert found["platforms"] == ["linux/amd64"]
    assert (found["user"], found["labels"], found["entrypoint"]) == (
        "1000",
        {"team": "a"},
        ["/app"],
    )
    assert (found["created"], found["exposed_ports"]) == ("2026-01-02T03:04:05Z", ["80/tcp"])
    assert found["size"] == sum(map(len, image.blobs))
    assert [list(entry) for entry in found["layers"]] == [["digest", "media_type", "size"]]  # type: ignore[union-attr,arg-type]
    assert (found["signatures"], found["sbom"]) == ([], [])


async def test_every_variant_of_an_index_is_described_and_so_are_its_referrers(
    repository: OciRepository, tmp_path: Path
) -> None:
    amd = make_image(make_layer(1), config=RUNTIME)
    arm = make_image(make_layer(2), platform="linux/arm64", config={"config": {"User": "root"}})
    note = make_image(make_layer(3), platform="unknown/unknown")
    index = make_index(amd, arm, note)
    for image in (
        index,
        make_referrer(index, b"sbom", "application/spdx+json"),
        make_referrer(arm, b"signature", "application/vnd.dev.sigstore.bundle.v0.3+json"),
    ):
        await push_image(repository, image, tmp_path)

    found = await read_metadata(repository, await read_graph(repository, index.digest), tmp_path)

    assert found["platforms"] == ["linux/amd64", "linux/arm64"]
    assert found["user"] == "1000"
    variants = found["variants"]
    assert isinstance(variants, list)
    assert [(entry["platform"], entry["user"]) for entry in variants] == [
        ("linux/amd64", "1000"),
        ("linux/arm64", "root"),
    ]
    assert found["sbom"] == ["application/spdx+json"]
    assert found["signatures"] == ["application/vnd.dev.sigstore.bundle.v0.3+json"]
