"""Which machine of whose account may enrol as the runner of an install."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from exclave.domain.identity import OrgId, RunnerId
from exclave.domain.runner_principals import is_runner
from exclave.domain.stacks import Cloud

_UNNAMED = re.compile(r"[^a-z0-9_-]")
_LONGEST_NAME = 63
FLAPPING = 3
"""So many runners of one install in `FLAPPING_S` mean that its machines do not stay."""
FLAPPING_S = 600.0


class PinnedBy(StrEnum):
    """What decided the account of an install."""

    CREATION = "creation"
    """It was given when the install was created."""
    CODE = "code"
    """The first machine that came with the one-time code."""


class Verdict(StrEnum):
    """What follows from evidence that is genuine."""

    ACCEPTED = "accepted"
    CODE_NEEDED = "code"
    """No account is known yet, and no valid code came with it."""
    FOREIGN_ACCOUNT = "account"
    FOREIGN_PRINCIPAL = "identity"
    FOREIGN_REGION = "region"


@dataclass(frozen=True, slots=True)
class Proof:
    """What evidence proves: a machine, and whose it is."""

    cloud: Cloud
    account: str
    """AWS account, Azure subscription or GCP project."""
    principal: str
    """The role, service account or managed identity of the machine."""
    machine: str
    region: str = ""
    """Empty if the cloud's statement names none."""
    tenant: str = ""
    """The Azure tenant."""


class InstallIdentity(NamedTuple):
    """The account that an install is pinned to, and who enrolled from it last."""

    org_id: OrgId
    install_id: str
    cloud: Cloud
    region: str
    """Empty if the first machine decides it, like the next three."""
    account: str
    tenant: str
    principal: str
    pinned_by: PinnedBy | None
    pinned_at: datetime | None
    must_confirm: bool
    """No runner enrols from an account that a code pinned until somebody confirms it."""
    confirmed_by: str | None
    confirmed_at: datetime | None
    runner_id: RunnerId | None
    """The runner that enrolled last."""
    last_machine: str
    last_at: datetime | None
    alarm: str
    """What somebody should look into, such as a try from another account."""
    alarm_at: datetime | None

    @property
    def is_pinned(self) -> bool:
        """Whether the account is known."""
        return bool(self.account)

    @property
    def waits(self) -> bool:
        """Whether somebody has to confirm the account before a runner enrols."""
        by_code = self.pinned_by is PinnedBy.CODE
        return self.must_confirm and by_code and self.confirmed_at is None


def name_runner(proof: Proof) -> str:
    """Return the name of a runner: its machine, which the cloud vouches for."""
    return _UNNAMED.sub("-", proof.machine.lower())[:_LONGEST_NAME].strip("-") or "machine"


def decide_enrolment(identity: InstallIdentity, proof: Proof, *, has_code: bool) -> Verdict:
    """Return whether the machine of a proof is the one that the install expects."""
    if identity.account and (
        proof.account != identity.account or (identity.tenant and proof.tenant != identity.tenant)
    ):
        return Verdict.FOREIGN_ACCOUNT
    named = is_runner(proof.cloud, identity.install_id, proof.account, proof.principal)
    if not named or (identity.principal and proof.principal != identity.principal):
        return Verdict.FOREIGN_PRINCIPAL
    if identity.region and proof.region and proof.region != identity.region:
        return Verdict.FOREIGN_REGION
    if not identity.is_pinned and not has_code:
        return Verdict.CODE_NEEDED
    return Verdict.ACCEPTED
