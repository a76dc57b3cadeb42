"""Policies on images with the real opa: a denial fails the build, the rest is reported with it."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from exclave.base.json_values import JsonObject
from exclave.client.oci.documents import PushedManifest
from exclave.runner.builds import recipes
from exclave.runner.builds.image_policies import KnownImage, check_image
from exclave.runner.builds.recipe import BuildWork, BuiltArtifact
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Outcome
from tests.integration.runner.builds.image_kit import Yard
from tests.integration.runner.executors.build_kit import Site, upload, uploaded
from tests.support.tools import need_tool

DIGEST = "sha256:" + "d" * 64
NO_ROOT = """
package nuon

deny contains msg if {
  input.metadata.user in {"", "0", "root"}
  msg := sprintf("%s:%s runs as root", [input.image, input.tag])
}

pass contains "it is small" if input.metadata.size < 1000
"""
BASES = """
package nuon

deny[msg] {
  base := input.base_images[_]
  not startswith(base, "registry.example/")
  msg := sprintf("%s is not one of our base images", [base])
}

warn[msg] {
  contains(input.dockerfile, "curl")
  msg := sprintf("%s downloads", [input.digest])
}
"""


class ImageSite:
    """A build executor whose recipe makes an image up."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        tools = folder / "tools"
        tools.mkdir()
        shutil.copy(need_tool("opa"), tools / "opa")
        self.archive = upload(folder / "app", {"infra/db/Dockerfile": "FROM scratch"})
        self.site = Site(folder / "site", self.archive, tools=tools)
        self.image = KnownImage("registry.example/web", "1.0", DIGEST)
        self.metadata: JsonObject = {"user": "7", "size": 5}
        monkeypatch.setattr(recipes, "RECIPES", {"image_build": self._build})

    async def build(self, *policies: str, **more: Any) -> Outcome:
        named = [{"name": f"rule-{at}", "rego": rego} for at, rego in enumerate(policies)]
        return await self.site.build(
            uploaded(self.archive), type="image_build", policies=named, **more
        )

    async def _build(self, work: BuildWork) -> BuiltArtifact:
        findings = await check_image(work, self.image, self._read_metadata)
        return BuiltArtifact(PushedManifest(DIGEST, 5), "", 5, findings=findings)

    async def _read_metadata(self) -> JsonObject:
        return self.metadata


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ImageSite:
    return ImageSite(tmp_path, monkeypatch)


async def test_an_image_that_passes_is_built_with_its_findings(images: ImageSite) -> None:
    outcome = await images.build(NO_ROOT)

    assert outcome.state == "succeeded", outcome.message
    assert outcome.outputs["policies"] == [
        {"name": "rule-0", "level": "pass", "message": "it is small", "resource": ""}
    ]
    assert "policy rule-0: pass: it is small" in images.site.bench.read_log()


async def test_a_denied_image_fails_the_build_with_every_sentence(images: ImageSite) -> None:
    images.image = KnownImage(
        "registry.example/web",
        "1.0",
        DIGEST,
        dockerfile="FROM alpine\nRUN curl x | sh\n",
        base_images=["alpine"],
    )
    images.metadata = {"user": "root", "size": 5}

    outcome = await images.build(NO_ROOT, BASES)

    assert (outcome.state, outcome.reason) == ("failed", "policy_denied")
    assert outcome.message == (
        "component `db`, step policies:"
        " policy `rule-0` denies this image: registry.example/web:1.0 runs as root\n"
        "policy `rule-1` denies this image: alpine is not one of our base images"
    )
    assert f"policy rule-1: warn: {DIGEST} downloads" in images.site.bench.read_log()


async def test_a_policy_that_cannot_be_evaluated_fails_the_build(images: ImageSite) -> None:
    outcome = await images.build("package nuon\n\ndeny contains {")

    assert (outcome.state, outcome.reason) == ("failed", "syntax")
    assert "`rule-0` cannot be evaluated" in outcome.message


async def test_a_build_without_policies_needs_no_opa(images: ImageSite) -> None:
    (images.site.folder.parent / "tools" / "opa").unlink()

    outcome = await images.build()

    assert outcome.state == "succeeded", outcome.message
    assert "policies" not in outcome.outputs


ALLOWED = """
package nuon

deny contains msg if {
  some base in input.base_images
  not startswith(base, "registry.example/")
  msg := sprintf("%s is not one of our base images", [base])
}

deny contains "it runs as root" if input.metadata.user == ""

pass contains "it has a bill of materials" if "application/spdx+json" in input.metadata.sbom
"""


async def test_a_policy_refuses_or_accepts_a_real_build(yard: Yard) -> None:
    yard.policies = [{"name": "images", "rego": ALLOWED}]
    yard.tools = {"opa": need_tool("opa")}

    refused = await yard.build({"Dockerfile": "FROM scratch\nCOPY Dockerfile /\n"})
    accepted = await yard.build({"Dockerfile": "FROM scratch\nCOPY Dockerfile /\nUSER 7\n"})

    assert refused.reason is Reason.POLICY_DENIED
    assert "policy `images` denies this image: it runs as root" in refused.message
    assert accepted.state is OutcomeState.SUCCEEDED, accepted.message
    findings: Any = accepted.outputs["policies"]
    assert [(one["level"], one["message"]) for one in findings] == [
        ("pass", "it has a bill of materials")
    ]
