"""Queries for attestation: the account that an install is pinned to, and used nonces."""

from datetime import datetime

from sqlalchemy import ColumnElement, bindparam, delete, insert, select, update

from exclave.domain.identity import OrgId, RunnerId
from exclave.domain.install_identities import InstallIdentity, PinnedBy, Proof
from exclave.storage.engine.database import Tx
from exclave.storage.engine.statements import Prepared
from exclave.storage.tables.attest import attest_nonces, install_identities

_SELECT = select(*(install_identities.c[name] for name in InstallIdentity._fields))


def add_identity(tx: Tx, org: OrgId, new: InstallIdentity) -> None:
    """Store whom an install expects."""
    tx.run(insert(install_identities).values({**new._asdict(), "org_id": org}))


def find_identity(
    tx: Tx, org: OrgId, install: str, *, lock: bool = False
) -> InstallIdentity | None:
    """Find whom an install expects."""
    query = _SELECT.where(*_own(org, install))
    return tx.first(query.with_for_update() if lock else query, InstallIdentity)


def pin_identity(tx: Tx, org: OrgId, install: str, proof: Proof, by: PinnedBy) -> None:
    """Store whose machine came first: from now on no other account is accepted."""
    pin = {
        "account": proof.account,
        "tenant": proof.tenant,
        "principal": proof.principal,
        "pinned_by": by,
        "pinned_at": tx.now,
    }
    if proof.region:
        pin["region"] = proof.region
    unpinned = install_identities.c.principal == ""
    tx.run(update(install_identities).where(*_own(org, install), unpinned).values(pin))


def note_enrolment(tx: Tx, org: OrgId, install: str, runner: RunnerId, machine: str) -> None:
    """Store which machine enrolled last, and as which runner."""
    last = {"runner_id": runner, "last_machine": machine, "last_at": tx.now}
    tx.run(update(install_identities).where(*_own(org, install)).values(last))


def note_alarm(tx: Tx, org: OrgId, install: str, alarm: str) -> None:
    """Store what somebody should look into."""
    row = {"alarm": alarm, "alarm_at": tx.now}
    tx.run(update(install_identities).where(*_own(org, install)).values(row))


def confirm_identity(tx: Tx, org: OrgId, install: str, account: str, by: str) -> bool:
    """Store who confirmed an account; return False if it is not that of the install now."""
    mine = (*_own(org, install), install_identities.c.account == account)
    row = {"confirmed_by": by, "confirmed_at": tx.now}
    return tx.run(update(install_identities).where(*mine).values(row)).rowcount == 1


def reset_identity(
    tx: Tx, org: OrgId, install: str, *, region: str, account: str, tenant: str
) -> None:
    """Forget the pinned account, or put another one in its place."""
    row = {
        "region": region,
        "account": account,
        "tenant": tenant,
        "principal": "",
        "pinned_by": PinnedBy.CREATION if account else None,
        "pinned_at": tx.now if account else None,
        "confirmed_by": None,
        "confirmed_at": None,
        "runner_id": None,
        "alarm": "",
        "alarm_at": None,
    }
    tx.run(update(install_identities).where(*_own(org, install)).values(row))


def require_confirmation(tx: Tx, org: OrgId, install: str, *, on: bool) -> None:
    """Store whether somebody has to confirm an account that a code pinned."""
    tx.run(update(install_identities).where(*_own(org, install)).values(must_confirm=on))


def spend_nonce(tx: Tx, hashed: str, expires_at: datetime) -> bool:
    """Store that a nonce is used; return False if it was used before, on whichever server."""
    fresh = tx.insert_missing(attest_nonces).values(hash=hashed, expires_at=expires_at)
    return tx.first(fresh.returning(attest_nonces.c.hash)) is not None


_DROP_NONCES = Prepared(delete(attest_nonces).where(attest_nonces.c.expires_at <= bindparam("now")))


def drop_expired_nonces(tx: Tx) -> None:
    """Delete used nonces that are too old to be shown again."""
    tx.count(_DROP_NONCES, now=tx.now)


def _own(org: OrgId, install: str) -> tuple[ColumnElement[bool], ...]:
    return (install_identities.c.org_id == org, install_identities.c.install_id == install)
