"""Bills of materials of real images, beside their provenance."""

import json
from typing import Any

from exclave.client.oci.documents import Descriptor
from exclave.wire.builds import SBOM_TYPE
from exclave.wire.jobs import OutcomeState
from tests.integration.runner.builds.image_kit import Yard

FILES = {
    "Dockerfile": "FROM scratch\nCOPY root /\n",
    "root/var/lib/dpkg/status": "Package: libc6\nVersion: 2.36-9\nArchitecture: amd64\n",
    "root/app/node_modules/left-pad/package.json": '{"name": "left-pad", "version": "1.3.0"}',
    "root/usr/lib/python3/site-packages/foo-1.2.dist-info/METADATA": "Name: foo\nVersion: 1.2\n",
}


async def read_sbom(yard: Yard, digest: str) -> tuple[dict[str, Any], list[Descriptor]]:
    """Return the bill of materials of an image, and all of its referrers."""
    referrers = await yard.own.list_referrers(digest)
    (sbom,) = [one for one in referrers if one.artifactType == SBOM_TYPE]
    manifest = json.loads((await yard.own.fetch_manifest(sbom.digest)).data)
    return json.loads(await yard.read_blob(manifest["layers"][0]["digest"])), referrers


def list_urls(document: dict[str, Any]) -> list[str]:
    """Return the package URLs of a document."""
    return [
        one["externalRefs"][0]["referenceLocator"]
        for one in document["packages"]
        if "externalRefs" in one
    ]


async def test_an_image_has_a_bill_of_materials_beside_its_provenance(yard: Yard) -> None:
    outcome = await yard.build(FILES)

    assert (outcome.state, outcome.message) == (OutcomeState.SUCCEEDED, "")
    digest = str(outcome.outputs["digest"])
    document, referrers = await read_sbom(yard, digest)
    assert len(referrers) == 2
    assert list_urls(document) == [
        "pkg:deb/debian/libc6@2.36-9?arch=amd64",
        "pkg:npm/left-pad@1.3.0",
        "pkg:pypi/foo@1.2",
    ]
    image = document["packages"][0]
    assert image["checksums"] == [
        {"algorithm": "SHA256", "checksumValue": digest.removeprefix("sha256:")}
    ]
    assert "packages: 3, sbom sha256:" in yard.site.bench.read_log()


async def test_an_index_has_one_for_all_platforms(yard: Yard) -> None:
    outcome = await yard.build(FILES, platforms=["linux/amd64", "linux/arm64"])

    document, _ = await read_sbom(yard, str(outcome.outputs["digest"]))
    assert len(list_urls(document)) == 3
