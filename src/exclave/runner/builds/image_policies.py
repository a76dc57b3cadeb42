"""Policies on an image: evaluated when it is known, before the build that made it can be used."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from exclave.base.json_values import JsonObject
from exclave.runner.builds.recipe import BuildWork
from exclave.runner.outcomes import WorkFailed
from exclave.runner.plans.policies import check_policies
from exclave.wire.jobs import Reason
from exclave.wire.plans import PolicyFinding


@dataclass(frozen=True, slots=True)
class KnownImage:
    """An image as policies see it."""

    image: str
    """Its repository as the app names it, without the tag."""
    tag: str
    digest: str
    dockerfile: str | None = None
    """The text that it was built from; None for an image from elsewhere."""
    base_images: Sequence[str] = ()


async def check_image(
    work: BuildWork, image: KnownImage, read_metadata: Callable[[], Awaitable[JsonObject]]
) -> tuple[PolicyFinding, ...]:
    """Evaluate the policies of a build on its image; a denial fails the build.

    The metadata is read only if there are policies; see `runner.images.metadata`.
    """
    if not work.spec.policies:
        return ()
    work.begin("policies")
    opa = await work.find_tool("opa")
    subject = json.dumps(make_image_input(image, await read_metadata())).encode()
    findings = await check_policies(work.context, str(opa.path), work.spec.policies, subject)
    denied = [finding for finding in findings if finding.level == "deny"]
    if denied:
        message = "\n".join(
            f"policy `{finding.name}` denies this image: {finding.message}" for finding in denied
        )
        raise WorkFailed(Reason.POLICY_DENIED, message)
    return tuple(findings)


def make_image_input(image: KnownImage, metadata: JsonObject) -> JsonObject:
    """Return the input of policies about an image."""
    subject: JsonObject = {
        "image": image.image,
        "tag": image.tag,
        "digest": image.digest,
        "metadata": metadata,
    }
    if image.dockerfile is None:
        return subject
    return {**subject, "dockerfile": image.dockerfile, "base_images": list(image.base_images)}
