"""Queries for four eyes: the switch of an org, the persons behind tokens, running approvals."""

from sqlalchemy import select, update

from exclave.domain.four_eyes import Switch
from exclave.domain.identity import OrgId, Role, ScopeKind, TokenId
from exclave.domain.workflows import WorkflowState
from exclave.storage.engine.database import Tx
from exclave.storage.tables.identity import accounts, api_tokens, orgs
from exclave.storage.tables.work import workflows


def read_switch(tx: Tx, org: OrgId, *, lock: bool = False) -> Switch:
    """Read whether an org asks for two people, and who wants to end that."""
    query = select(orgs.c.four_eyes, orgs.c.four_eyes_off_by, orgs.c.four_eyes_off_at)
    query = query.where(orgs.c.id == org)
    row = tx.first(query.with_for_update() if lock else query)
    if row is None:
        return Switch(on=False)
    return Switch(bool(row.four_eyes), row.four_eyes_off_by, row.four_eyes_off_at)


def write_switch(tx: Tx, org: OrgId, switch: Switch) -> None:
    """Store the switch."""
    tx.run(
        update(orgs)
        .where(orgs.c.id == org)
        .values(four_eyes=switch.on, four_eyes_off_by=switch.off_by, four_eyes_off_at=switch.off_at)
    )


def list_admins(tx: Tx, org: OrgId) -> dict[str, str]:
    """List the persons with a valid admin token of the whole org: their names by their ids."""
    person = api_tokens.c.person_id
    rows = tx.all(
        select(api_tokens.c.account_id, person, api_tokens.c.grants)
        .where(api_tokens.c.org_id == org, api_tokens.c.revoked_at.is_(None))
        .where(api_tokens.c.expires_at > tx.now)
    )
    admins = {
        row.person_id or row.account_id
        for row in rows
        if any(grant.role is Role.ADMIN and grant.scope is ScopeKind.ORG for grant in row.grants)
    }
    named = tx.all(select(accounts.c.id, accounts.c.name).where(accounts.c.org_id == org))
    return {row.id: row.name for row in named if row.id in admins}


def find_name(tx: Tx, org: OrgId, person: str | None) -> str | None:
    """Find the name of a person."""
    mine = (accounts.c.org_id == org, accounts.c.id == person)
    row = None if person is None else tx.first(select(accounts.c.name).where(*mine))
    return None if row is None else str(row.name)


def confirm_person(tx: Tx, org: OrgId, token: TokenId, maker: str) -> bool:
    """Make a token count as its own account; return False if it does not count as its maker."""
    mine = (api_tokens.c.org_id == org, api_tokens.c.id == token, api_tokens.c.person_id == maker)
    return tx.run(update(api_tokens).where(*mine).values(person_id=None)).rowcount == 1


def stop_approving_all(tx: Tx, org: OrgId) -> int:
    """Switch automatic approval off in running workflows; return in how many."""
    mine = (workflows.c.org_id == org, workflows.c.state == WorkflowState.RUNNING)
    # In the order of their ids, as everybody who locks several workflows does.
    query = select(workflows.c.id, workflows.c.revision).where(*mine, workflows.c.approve_all)
    rows = tx.all(query.order_by(workflows.c.id).with_for_update())
    tx.update_each(
        workflows,
        [
            {"org_id": org, "id": row.id, "approve_all": False, "revision": row.revision + 1}
            for row in rows
        ],
    )
    return len(rows)
