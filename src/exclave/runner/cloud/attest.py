"""Evidence of this machine for the control plane: who it is, by the word of its cloud.

No key of the machine leaves it: for AWS the headers of a signed question are handed on, Google and
Azure issue statements for this one challenge.
"""

from dataclasses import dataclass, field
from typing import Protocol

from exclave.base.aws_regions import name_service
from exclave.base.clock import Clock
from exclave.runner.cloud.boot import Boot
from exclave.runner.cloud.imds import METADATA, AwsMetadata, AzureMetadata, GcpMetadata
from exclave.runner.cloud.sigv4 import SignedFor, sign_post
from exclave.wire.attest import (
    AZURE_AUDIENCE,
    BIND_HEADER,
    STS_BODY,
    STS_CONTENT_TYPE,
    AwsEvidence,
    AzureEvidence,
    Evidence,
    GcpEvidence,
    name_audience,
    write_azure_nonce,
    write_bind,
)


class Witness(Protocol):
    """Makes evidence of one cloud."""

    async def make_evidence(self, bind: bytes) -> Evidence:
        """Return evidence that contains a digest; `CloudRefused` if the cloud gives none."""
        ...


@dataclass(frozen=True, slots=True)
class AwsWitness:
    """Signs a question to AWS, which the control plane asks."""

    region: str
    clock: Clock
    metadata: AwsMetadata = field(default_factory=AwsMetadata)

    async def make_evidence(self, bind: bytes) -> AwsEvidence:
        """Return the headers of a signed `GetCallerIdentity`."""
        machine = await self.metadata.read_keys()
        headers = sign_post(
            machine.keys,
            SignedFor("sts", self.region, self.clock.now()),
            name_service("sts", self.region),
            STS_BODY,
            STS_CONTENT_TYPE,
            {BIND_HEADER: write_bind(bind)},
        )
        return AwsEvidence(cloud="aws", region=self.region, headers=headers)


@dataclass(frozen=True, slots=True)
class GcpWitness:
    """Requests an identity token for this challenge."""

    runner_url: str
    metadata: GcpMetadata

    async def make_evidence(self, bind: bytes) -> GcpEvidence:
        """Return the token."""
        token = await self.metadata.read_identity(name_audience(self.runner_url, bind))
        return GcpEvidence(cloud="gcp", token=token.reveal())


@dataclass(frozen=True, slots=True)
class AzureWitness:
    """Requests a token that opens nothing, and a document with the nonce of this challenge."""

    metadata: AzureMetadata
    client_id: str = ""

    async def make_evidence(self, bind: bytes) -> AzureEvidence:
        """Return both."""
        token = await self.metadata.read_token(AZURE_AUDIENCE, self.client_id)
        document = await self.metadata.read_document(write_azure_nonce(bind))
        return AzureEvidence(cloud="azure", token=token.value.reveal(), document=document)


def choose_witness(boot: Boot, clock: Clock, metadata_url: str = METADATA) -> Witness:
    """Return the witness of the cloud that a machine is in."""
    match boot.cloud:
        case "aws":
            return AwsWitness(boot.region, clock, AwsMetadata(metadata_url))
        case "gcp":
            return GcpWitness(boot.runner_url, GcpMetadata(clock, metadata_url))
        case "azure":
            return AzureWitness(AzureMetadata(clock, metadata_url), boot.identity)
