"""Enrolment by attestation: a runner proves by its cloud which machine of whose account it is."""

import hashlib
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints

from exclave.base.aws_regions import REGION
from exclave.wire.envelope import encode_bytes
from exclave.wire.jobs import JobKind
from exclave.wire.model import Id, Name, Reply, Request
from exclave.wire.runner import Key, Nonce, Protocol, ShortText, Token

AttestingCloud = Literal["aws", "azure", "gcp"]

STS_BODY: Final = b"Action=GetCallerIdentity&Version=2011-06-15"
"""All that AWS is asked: who signed this?"""
STS_CONTENT_TYPE: Final = "application/x-www-form-urlencoded; charset=utf-8"
BIND_HEADER: Final = "x-exclave-bind"
SIGNED_HEADERS: Final = (
    "content-type", "host", "x-amz-date", "x-amz-security-token", BIND_HEADER,
)  # fmt: skip
"""The headers of evidence from AWS, all of them signed; `authorization` comes with them."""
AZURE_AUDIENCE: Final = "api://AzureADTokenExchange"
"""A token for it opens nothing in Azure, unlike one for its management."""
_NONCE_OF_AZURE: Final = 24
"""Bytes: their Base64 has 32 characters, the most that Azure puts into a document."""

HeaderName = Annotated[str, StringConstraints(max_length=64)]
HeaderText = Annotated[str, StringConstraints(max_length=4096)]
SignedToken = Annotated[str, StringConstraints(max_length=8192, pattern=r"^[A-Za-z0-9_.-]+$")]
"""A JSON web token."""


class AskChallenge(Request):
    """A request for a nonce for one install, one cloud and one key."""

    install_id: Id
    cloud: AttestingCloud
    public_key: Key


class Challenge(Reply):
    """The nonce, and for how long it may be used, once. Unknown installs get one too."""

    nonce: Nonce
    expires_in_s: float


class AwsEvidence(Request):
    """A signed `GetCallerIdentity`: its headers, with which the control plane asks AWS itself."""

    cloud: Literal["aws"]
    region: Annotated[str, StringConstraints(pattern=REGION)]
    headers: Annotated[dict[HeaderName, HeaderText], Field(max_length=6)]


class GcpEvidence(Request):
    """An identity token of the machine, for an audience that names the challenge."""

    cloud: Literal["gcp"]
    token: SignedToken


class AzureEvidence(Request):
    """A token of the runner's identity, and a document about its machine with the nonce."""

    cloud: Literal["azure"]
    token: SignedToken
    document: Annotated[str, StringConstraints(max_length=16384, pattern=r"^[A-Za-z0-9+/=\r\n]+$")]
    """PKCS#7 in Base64."""


Evidence = Annotated[AwsEvidence | GcpEvidence | AzureEvidence, Field(discriminator="cloud")]


class EnrolAttested(Request):
    """Exchange evidence for an identity bound to the runner's own key.

    The code is needed as long as no account is known for the install.
    """

    install_id: Id
    nonce: Nonce
    public_key: Key
    name: Name
    version: ShortText
    protocol: Protocol
    capabilities: Annotated[list[JobKind], Field(max_length=50)]
    evidence: Evidence
    code: Token | None = None


def bind_evidence(nonce: str, install_id: str, public_key: str) -> bytes:
    """Return the digest that evidence has to contain: good for this challenge and key only."""
    text = f"exclave-attest-v1\n{nonce}\n{install_id}\n{public_key}"
    return hashlib.sha256(text.encode()).digest()


def write_bind(bind: bytes) -> str:
    """Return the digest as a header and an audience carry it."""
    return encode_bytes(bind)


def name_audience(runner_url: str, bind: bytes) -> str:
    """Return the audience of a token from Google Cloud."""
    return f"{runner_url.rstrip('/')}/attest/{encode_bytes(bind)}"


def write_azure_nonce(bind: bytes) -> str:
    """Return the nonce of a document from Azure."""
    return encode_bytes(bind[:_NONCE_OF_AZURE])
