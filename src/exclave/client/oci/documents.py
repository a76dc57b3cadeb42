"""Documents of an OCI registry: descriptors, manifests, errors, locations of uploads."""

import re
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeVar

import httpx
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from exclave.base.errors import Kind, Problem
from exclave.client.problems import RemoteProblem, UnexpectedReply

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
EMPTY = "application/vnd.oci.empty.v1+json"
EMPTY_BYTES = b"{}"
MAX_MANIFEST = 4 << 20
"""Most bytes of a manifest that are sent or read."""

DigestText = Annotated[
    str, StringConstraints(pattern=r"^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$")
]


class CorruptContent(Problem):
    """A registry sent other bytes than the digest names; nothing of them was kept."""

    kind: ClassVar = Kind.CONFLICT
    code: ClassVar = "corrupt_content"
    hint: ClassVar = "Check the registry's storage; build the artifact again if it is damaged."


class _Document(BaseModel):
    """Base of documents that a registry sends; unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Platform(_Document):
    """The machine that a manifest of an index is for."""

    architecture: str = ""
    os: str = ""
    variant: str = ""

    def write(self) -> str:
        """Return the platform as people write it, such as `linux/arm64/v8`."""
        return "/".join(part for part in (self.os, self.architecture, self.variant) if part)


class Descriptor(_Document):
    """Content by its digest, with its type and size."""

    mediaType: str  # noqa: N815 - the name in the document
    digest: DigestText
    size: Annotated[int, Field(ge=0)]
    artifactType: str = ""  # noqa: N815 - the name in the document
    annotations: dict[str, str] = {}
    urls: list[str] = []
    platform: Platform | None = None


class Manifest(_Document):
    """An image manifest: what an artifact is made of."""

    mediaType: str = ""  # noqa: N815 - the name in the document
    artifactType: str = ""  # noqa: N815 - the name in the document
    config: Descriptor
    layers: list[Descriptor]
    subject: Descriptor | None = None
    annotations: dict[str, str] = {}


class Index(_Document):
    """A list of manifests, such as those that refer to a subject."""

    manifests: list[Descriptor]


class _Fault(_Document):
    code: str = "UNKNOWN"
    message: str = ""


class _Faults(_Document):
    errors: Annotated[list[_Fault], Field(min_length=1)]


D = TypeVar("D", Manifest, Index)


@dataclass(frozen=True, slots=True)
class PushedManifest:
    """A manifest that is in the registry now."""

    digest: str
    size: int
    media_type: str = MANIFEST


def read_document(kind: type[D], data: bytes) -> D:
    """Read a manifest or an index."""
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UnexpectedReply(
            f"the registry sent a document that is not a valid {kind.__name__}:"
            f" `{where}`: {first['msg']}",
            hint="Check that the digest names an artifact that Exclave built.",
        ) from error


def read_refusal(response: httpx.Response) -> RemoteProblem:
    """Return the problem of an error response, with the registry's error code if it has one."""
    asked = response.headers.get("Retry-After", "")
    facts = {"retry_after_s": float(asked)} if asked.isdecimal() else {}
    try:
        fault = _Faults.model_validate_json(response.content).errors[0]
    except ValidationError:
        fault = _Fault(message=f"status {response.status_code}")
    where = f"{response.request.method} {response.request.url.path}"
    return RemoteProblem(
        response.status_code,
        fault.code.lower()[:64],
        f"the registry refused {where}: {fault.message or fault.code}",
        hint=_advise(response.status_code),
        facts=facts,
    )


def write_fallback_tag(digest: str) -> str:
    """Return the tag of a manifest's referrers, for registries that do not list them themselves."""
    algorithm, _, value = digest.partition(":")
    return f"{algorithm}-{value[:64]}"


def read_location(response: httpx.Response) -> str:
    """Return the URL at which an upload continues."""
    location = response.headers.get("Location", "")
    if not location:
        raise UnexpectedReply("the registry began an upload without a Location header")
    return str(response.request.url.join(location))


def read_end(response: httpx.Response) -> int:
    """Return how many bytes of an upload have arrived, from the Range header."""
    match = re.fullmatch(r"(?:bytes=)?0-(\d{1,18})", response.headers.get("Range", ""))
    return int(match[1]) + 1 if match else 0


def _advise(status: int) -> str:
    if status in {401, 403}:
        return "Check the credentials for the registry, and that they reach this repository."
    if status == httpx.codes.NOT_FOUND:
        return "It was never pushed, or it was deleted; build it again."
    return ""
