"""What every cloud's attestation has in common: a claim, its evidence, and the proof made of it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from exclave.domain.install_identities import Proof
from exclave.domain.stacks import Cloud
from exclave.wire.attest import AwsEvidence, AzureEvidence, GcpEvidence, bind_evidence

AnyEvidence: TypeAlias = AwsEvidence | AzureEvidence | GcpEvidence


_AT_ONCE: Final = 16


class EvidenceRefused(Exception):  # noqa: N818 - says what happened, like `Problem`
    """Evidence does not prove what it claims; `reason` is a word, `detail` is for the audit log.

    Neither is sent to the caller, who would learn from it how to forge better.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class CloudUnreachable(Exception):  # noqa: N818 - says what happened, like `Problem`
    """The cloud that could tell does not answer; the same evidence may be good later."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a machine claims: to run an install, with a key, in answer to a nonce."""

    install: str
    public_key: str
    nonce: str
    runner_url: str
    region: str
    """Where the install is; empty if that is not known yet, like the next two."""
    account: str = ""
    tenant: str = ""

    @property
    def bind(self) -> bytes:
        """The digest that evidence for this claim contains, and no other evidence does."""
        return bind_evidence(self.nonce, self.install, self.public_key)


class Attestor(Protocol):
    """Verifies the evidence of one cloud."""

    async def verify(self, claim: Claim, evidence: AnyEvidence) -> Proof:
        """Return what the evidence proves.

        Raise `EvidenceRefused` if it is not genuine, and `CloudUnreachable` if nobody can tell.
        """
        ...


@dataclass(frozen=True, slots=True)
class Attestors:
    """The clouds whose evidence this control plane accepts."""

    by_cloud: Mapping[Cloud, Attestor] = field(default_factory=dict)
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    """Verifications that run at once; more are refused, so that slow clouds hold nothing up."""

    def find(self, cloud: Cloud) -> Attestor | None:
        """Return the attestor of a cloud, if the operator allows that cloud."""
        return self.by_cloud.get(cloud)
