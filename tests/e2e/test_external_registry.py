"""Artifacts in a registry that is not ours: the CNCF one, with a password, without referrers."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from exclave.base.secrets import Secret
from exclave.client.oci.client import Login, OciClient
from exclave.client.problems import RemoteProblem
from tests.support.registries import PASSWORD, serve_registry


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    with serve_registry(tmp_path / "registry", login=True) as url:
        yield url


@dataclass(frozen=True)
class Kind:
    artifact: str = "application/vnd.exclave.terraform_module.v1"
    layer: str = "application/vnd.exclave.source.v1.tar"


async def test_artifacts_and_their_provenance_live_in_another_registry(
    registry: str, tmp_path: Path
) -> None:
    layer = tmp_path / "layer"
    layer.write_bytes(b"0123456789" * 900_000)
    login = Login("runner", Secret(PASSWORD))
    async with OciClient(f"{registry}/vendor/exclave", login=login) as client:
        made = await client.push_artifact(
            "apps/demo",
            artifact_type=Kind.artifact,
            layer=layer,
            layer_type=Kind.layer,
            annotations={},
            tag="v1",
        )
        proofs = []
        for number in range(2):
            proof = await client.push_artifact(
                "apps/demo",
                artifact_type="application/vnd.in-toto+json",
                layer=layer,
                layer_type="application/json",
                annotations={"n": str(number)},
                subject=made,
            )
            proofs.append(proof.digest)

        found = await client.list_referrers("apps/demo", made.digest)
        other = await client.list_referrers("apps/demo", made.digest, "application/x")
        pulled = await client.pull_layer("apps/demo", made.digest, tmp_path / "out")

    assert [each.digest for each in found] == proofs
    assert (found[0].artifactType, other) == ("application/vnd.in-toto+json", [])
    assert pulled.read_bytes() == layer.read_bytes()


async def test_a_wrong_password_is_told_as_such(registry: str) -> None:
    login = Login("runner", Secret("wrong"))
    async with OciClient(f"{registry}/vendor", login=login) as client:
        with pytest.raises(RemoteProblem) as caught:
            await client.get_manifest("apps/demo", "v1")

    assert caught.value.status == 401
    assert "credentials" in caught.value.advice
