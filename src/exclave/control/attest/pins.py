"""The account that an install is pinned to: looked up, made on first use, decided."""

from exclave.base.digests import hash_token
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.install_identities import (
    FLAPPING,
    FLAPPING_S,
    InstallIdentity,
    PinnedBy,
    Proof,
    Verdict,
)
from exclave.domain.installs import AppInstall
from exclave.domain.runners import Enrolment
from exclave.storage import install_identities, runner_access, runners
from exclave.storage.engine.database import Tx

ATTESTATION = "attestation"
"""The actor of what a machine caused by its evidence."""


def find_identity(tx: Tx, org: OrgId, install: AppInstall) -> InstallIdentity:
    """Return whom an install expects; as its creation decided it if nothing is stored yet."""
    stored = install_identities.find_identity(tx, org, install.id)
    return stored or _make_identity(tx, org, install)


def hold_identity(tx: Tx, org: OrgId, install: AppInstall) -> InstallIdentity:
    """Return whom an install expects, stored and locked. The install has to be locked before."""
    stored = install_identities.find_identity(tx, org, install.id, lock=True)
    if stored is None:
        stored = _make_identity(tx, org, install)
        install_identities.add_identity(tx, org, stored)
    return stored


def find_code(
    tx: Tx, install: AppInstall, code: str | None, *, lock: bool = False
) -> Enrolment | None:
    """Find the one-time code of an install, if it may still be used."""
    if code is None:
        return None
    enrolment = runner_access.find_enrolment(tx, hash_token(code), lock=lock)
    if enrolment is None or enrolment.queue_id != QueueId(install.id):
        return None
    fresh = enrolment.used_at is None and enrolment.expires_at > tx.now
    return enrolment if fresh else None


def note_foreign(
    tx: Tx, deps: Deps, identity: InstallIdentity, proof: Proof, verdict: Verdict
) -> None:
    """Raise an alarm about genuine evidence of somebody whom the install does not expect."""
    whose = f"{proof.machine} of {proof.account}"
    wanted = {
        Verdict.FOREIGN_ACCOUNT: f"account {identity.account}",
        Verdict.FOREIGN_PRINCIPAL: f"identity {identity.principal or 'of its runner'}",
        Verdict.FOREIGN_REGION: f"region {identity.region}",
    }[verdict]
    alarm = f"machine {whose} ({proof.principal}) tried to enrol; expected: {wanted}"[:500]
    install_identities.note_alarm(tx, identity.org_id, identity.install_id, alarm)
    record(
        tx,
        deps,
        identity.org_id,
        ATTESTATION,
        "attestation_foreign",
        identity.install_id,
        reason=str(verdict),
        account=proof.account,
        principal=proof.principal[:300],
        machine=proof.machine,
        region=proof.region,
    )
    tx.wake("installs")


def note_flapping(tx: Tx, deps: Deps, identity: InstallIdentity, install: AppInstall) -> None:
    """Raise an alarm if machines replace each other all the time."""
    times = runners.list_creation_times(tx, identity.org_id, QueueId(install.id), FLAPPING + 1)
    newest = times[:FLAPPING]
    if len(times) <= FLAPPING or (tx.now - newest[-1]).total_seconds() > FLAPPING_S:
        return
    alarm = f"{FLAPPING} machines replaced each other within {FLAPPING_S / 60:.0f} minutes"
    install_identities.note_alarm(tx, identity.org_id, install.id, alarm)
    record(tx, deps, identity.org_id, ATTESTATION, "runner_flapping", install.id, reason=alarm)


def _make_identity(tx: Tx, org: OrgId, install: AppInstall) -> InstallIdentity:
    place = install.place
    return InstallIdentity(
        org_id=org,
        install_id=install.id,
        cloud=install.target,
        region=place.region,
        account=place.account,
        tenant=place.tenant,
        principal="",
        pinned_by=PinnedBy.CREATION if place.account else None,
        pinned_at=tx.now if place.account else None,
        must_confirm=False,
        confirmed_by=None,
        confirmed_at=None,
        runner_id=None,
        last_machine="",
        last_at=None,
        alarm="",
        alarm_at=None,
    )
