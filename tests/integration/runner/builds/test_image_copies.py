"""Images from elsewhere become artifacts: pinned to their digest, copied, verified."""

import asyncio
import base64
import json
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from exclave.base.secrets import Secret
from exclave.client.oci.client import Login, OciClient
from exclave.client.oci.repository import OciRepository
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.logs import Stream
from exclave.wire.runner import Outcome
from tests.integration.runner.executors.build_kit import Site
from tests.support.images import (
    MadeImage,
    describe,
    make_image,
    make_index,
    make_layer,
    make_referrer,
    push_image,
)
from tests.support.registries import PASSWORD, USERNAME, serve_registry
from tests.support.tools import need_tool

KEY = ec.derive_private_key(7, ec.SECP256R1())
OTHER_KEY = ec.derive_private_key(8, ec.SECP256R1())
PEM = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
SIMPLE = "application/vnd.dev.cosign.simplesigning.v1+json"


@dataclass
class Shop:
    """A vendor's registry, the registry of somebody else, and a build runner between them."""

    site: Site
    host: str
    elsewhere: OciRepository
    own: OciRepository
    folder: Path

    async def push(self, image: MadeImage, tag: str = "") -> str:
        return await push_image(self.elsewhere, image, self.folder, tag)

    async def build(self, *policies: str, **source: Any) -> Outcome:
        wanted = {"type": "image", "image": f"{self.host}/acme/app", **source}
        rules = [{"name": "rule", "rego": rego} for rego in policies]
        return await self.site.build(wanted, type="image_copy", policies=rules)

    def read_log(self) -> str:
        return "\n".join(self.site.bench.texts(Stream.SYSTEM))


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve_registry(tmp_path_factory.mktemp("private"), login=True) as url:
        yield url


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    with (
        serve_registry(tmp_path / "elsewhere") as url,
        serve_registry(tmp_path / "own") as own_url,
    ):
        async with OciClient(url) as source, OciClient(own_url) as own:
            yield Shop(
                Site(tmp_path / "site", registry=own),
                url.removeprefix("http://"),
                source.open_repository("acme/app"),
                own.open_repository("apps/demo"),
                tmp_path,
            )


async def test_a_tag_is_pinned_and_the_whole_image_copied(shop: Shop) -> None:
    arm = make_image(make_layer(2), platform="linux/arm64")
    index = make_index(make_image(make_layer(1)), arm)
    await shop.push(index, "1.2")
    await shop.push(make_referrer(arm, b"sbom", "application/spdx+json"))

    outcome = await shop.build(tag="1.2")
    await shop.push(make_image(make_layer(9)), "1.2")

    assert outcome.state is OutcomeState.SUCCEEDED
    assert outcome.outputs["digest"] == index.digest
    assert outcome.outputs["size"] == sum(
        len(blob) for child in index.children for blob in child.blobs
    )
    assert (await shop.own.fetch_manifest(index.digest)).data == index.data
    kinds = [each.artifactType for each in await shop.own.list_referrers(arm.digest)]
    assert kinds == ["application/spdx+json"]


async def test_the_provenance_names_the_image_that_was_copied(shop: Shop) -> None:
    image = make_image(make_layer(1))
    await shop.push(image, "v3")

    await shop.build(tag="v3")

    proof = (await shop.own.list_referrers(image.digest))[0]
    manifest = json.loads((await shop.own.fetch_manifest(proof.digest)).data)
    path = f"/v2/apps/demo/blobs/{manifest['layers'][0]['digest']}"
    async with httpx.AsyncClient(trust_env=False) as http:
        envelope = (await http.get(f"{shop.own.registry}{path}")).json()
    statement = json.loads(base64.b64decode(envelope["payload"]))
    assert statement["subject"][0]["digest"] == {"sha256": image.digest.removeprefix("sha256:")}
    materials = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert {
        "uri": f"docker://{shop.host}/acme/app:v3",
        "digest": {"sha256": image.digest.removeprefix("sha256:")},
    } in materials


@pytest.mark.parametrize(
    ("policy", "tag"),
    [("~1.29", "1.29.4"), ("^1.0", "1.30.0"), (">=2.0.0-0", "2.0.0-rc.1"), ("*", "1.30.0")],
)
async def test_an_update_policy_takes_the_highest_tag_that_fits(
    shop: Shop, policy: str, tag: str
) -> None:
    tags = ("1.29.1", "1.29.4", "1.30.0", "2.0.0-rc.1", "latest", "nightly-7")
    digests = {
        name: await shop.push(make_image(make_layer(number)), name)
        for number, name in enumerate(tags)
    }

    outcome = await shop.build(update_policy=policy)

    assert outcome.outputs["digest"] == digests[tag]


async def test_an_update_policy_that_no_tag_fits_names_the_tags(shop: Shop) -> None:
    await shop.push(make_image(make_layer(1)), "1.0.0")

    outcome = await shop.build(update_policy="^3")

    assert outcome.reason is Reason.IMAGE_UNAVAILABLE
    assert outcome.message.endswith("has no tag for `^3`; it has 1.0.0")


async def test_a_tag_that_is_not_there(shop: Shop) -> None:
    outcome = await shop.build(tag="gone")

    assert outcome.reason is Reason.IMAGE_UNAVAILABLE
    assert f"there is no image `{shop.host}/acme/app`" in outcome.message


async def test_an_image_behind_a_login(shop: Shop, private: str, tmp_path: Path) -> None:
    login = Login(USERNAME, Secret(PASSWORD))
    image = make_image(make_layer(3))
    async with OciClient(private, login=login) as client:
        await push_image(client.open_repository("acme/secret"), image, tmp_path, "1")
    host = private.removeprefix("http://")

    refused = await shop.build(image=f"{host}/acme/secret", tag="1")
    file = tmp_path / "site" / "source-credentials.json"
    entry = {"prefix": private, "username": USERNAME, "password": PASSWORD}
    file.write_text(json.dumps({"credentials": [entry]}))
    file.chmod(0o600)
    outcome = await shop.build(image=f"{host}/acme/secret", tag="1")

    assert refused.reason is Reason.ACCESS_DENIED
    assert "source-credentials.json" in refused.message
    assert outcome.outputs["digest"] == image.digest
    assert PASSWORD not in shop.read_log()


def sign(digest: str, key: ec.EllipticCurvePrivateKey) -> tuple[bytes, str]:
    """Return what cosign signs, and the signature."""
    payload = {
        "critical": {
            "identity": {"docker-reference": "acme/app"},
            "image": {"docker-manifest-digest": digest},
            "type": "cosign container image signature",
        },
        "optional": None,
    }
    content = json.dumps(payload).encode()
    signature = key.sign(content, ec.ECDSA(hashes.SHA256()))
    return content, base64.b64encode(signature).decode()


def make_signature(digest: str, key: ec.EllipticCurvePrivateKey) -> MadeImage:
    content, signature = sign(digest, key)
    layer = describe(content, SIMPLE, annotations={"dev.cosignproject.cosign/signature": signature})
    plain = make_image(content)
    document = {**json.loads(plain.data), "layers": [layer]}
    return MadeImage(json.dumps(document).encode(), blobs=plain.blobs)


async def test_a_signed_image_is_taken(shop: Shop) -> None:
    image = make_image(make_layer(1))
    await shop.push(image, "1")
    await shop.push(make_signature(image.digest, KEY), f"{image.digest.replace(':', '-')}.sig")

    outcome = await shop.build(tag="1", verification={"key": PEM})

    assert (outcome.state, outcome.message) == (OutcomeState.SUCCEEDED, "")
    assert "is signed with the key" in shop.read_log()


@pytest.mark.parametrize(
    ("signed", "key", "message"),
    [
        ("nothing", KEY, "it has none"),
        ("itself", OTHER_KEY, "none of its 1 signatures was made with this key"),
        ("another image", KEY, "none of its 1 signatures"),
    ],
)
async def test_an_image_without_the_right_signature_is_refused(
    shop: Shop, signed: str, key: ec.EllipticCurvePrivateKey, message: str
) -> None:
    image = make_image(make_layer(1))
    await shop.push(image, "1")
    about = image.digest if signed == "itself" else "sha256:" + "0" * 64
    if signed != "nothing":
        await shop.push(make_signature(about, key), f"{image.digest.replace(':', '-')}.sig")

    outcome = await shop.build(tag="1", verification={"key": PEM})

    assert outcome.reason is Reason.SIGNATURE_MISSING
    assert message in outcome.message
    assert not await shop.own.has_manifest(image.digest)


@pytest.mark.parametrize(
    "verification",
    [{"issuer": "https://token.example.com"}, {"key": PEM, "subject": "x"}, {"key": "no key"}],
)
async def test_other_ways_to_verify_are_refused(
    shop: Shop, verification: Mapping[str, str]
) -> None:
    image = make_image(make_layer(1))
    await shop.push(image, "1")

    outcome = await shop.build(tag="1", verification=verification)

    assert outcome.reason is Reason.SIGNATURE_MISSING
    assert "[verification]" in outcome.message
    assert not await shop.own.has_manifest(image.digest)


async def test_a_bundle_with_a_signed_statement_is_taken(shop: Shop) -> None:
    image = make_image(make_layer(1))
    await shop.push(image, "1")
    kind = "application/vnd.in-toto+json"
    subject = [{"digest": {"sha256": image.digest.removeprefix("sha256:")}}]
    payload = json.dumps({"_type": "https://in-toto.io/Statement/v1", "subject": subject}).encode()
    encoded = f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload
    signature = KEY.sign(encoded, ec.ECDSA(hashes.SHA256()))
    bundle = {
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "dsseEnvelope": {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": kind,
            "signatures": [{"sig": base64.b64encode(signature).decode()}],
        },
    }
    content = json.dumps(bundle).encode()
    plain = make_referrer(image, content, bundle["mediaType"])  # type: ignore[arg-type]
    document = json.loads(plain.data)
    document["layers"][0]["mediaType"] = bundle["mediaType"]
    await shop.push(MadeImage(json.dumps(document).encode(), blobs=plain.blobs))

    outcome = await shop.build(tag="1", verification={"key": PEM})

    assert outcome.state is OutcomeState.SUCCEEDED


async def test_a_stop_ends_a_copy_and_leaves_no_files(shop: Shop) -> None:
    image = make_image(*(make_layer(number, 4_000_000) for number in range(10)))
    await shop.push(image, "1")
    task = asyncio.create_task(shop.build(tag="1"))
    await asyncio.sleep(0)
    shop.site.bench.stop.request(Reason.CANCELLED, 1.0)

    outcome = await task

    assert (outcome.state, outcome.reason) == (OutcomeState.CANCELLED, Reason.CANCELLED)
    assert not await shop.own.has_manifest(image.digest)
    folder = shop.site.bench.folder / "blobs"
    assert list(folder.glob("*")) == []


async def test_a_policy_sees_the_image_before_it_is_copied(shop: Shop) -> None:
    opa = shop.site.folder / "tools" / "opa"
    opa.parent.mkdir()
    shutil.copy(need_tool("opa"), opa)
    image = make_image(make_layer(1), config={"config": {"User": "root"}})
    await shop.push(image, "1.2")
    rego = """
package nuon

deny contains msg if {
  input.metadata.user == "root"
  msg := sprintf("%s %s runs as root", [input.tag, input.digest])
}
"""

    outcome = await shop.build(rego, tag="1.2")

    assert (outcome.state, outcome.reason) == (OutcomeState.FAILED, Reason.POLICY_DENIED)
    assert outcome.message == (
        "component `db`, step policies: policy `rule` denies this image:"
        f" 1.2 {image.digest} runs as root"
    )
    assert not await shop.own.has_manifest(image.digest)
