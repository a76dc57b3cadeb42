"""Queries for links to Stacks: codes with which customers look at files, by their hash."""

from collections.abc import Sequence

from sqlalchemy import Select, insert, select, update

from exclave.domain.identity import OrgId
from exclave.domain.stacks import StackView
from exclave.storage.engine.database import Tx
from exclave.storage.tables.stacks import stack_views

_SELECT = select(
    stack_views.c.org_id.label("org"),
    stack_views.c.id,
    stack_views.c.install_id,
    stack_views.c.created_by,
    stack_views.c.created_at,
    stack_views.c.expires_at,
    stack_views.c.revoked_at,
)


def add_view(tx: Tx, new: StackView, hashed: str) -> None:
    """Store a link by the hash of its code."""
    tx.run(
        insert(stack_views).values(
            org_id=new.org,
            id=new.id,
            install_id=new.install_id,
            hash=hashed,
            created_by=new.created_by,
            created_at=new.created_at,
            expires_at=new.expires_at,
        )
    )


def find_view(tx: Tx, hashed: str) -> StackView | None:
    """Return the link of any org that has this hash, unless it is revoked or has expired."""
    query = _SELECT.where(stack_views.c.hash == hashed, stack_views.c.revoked_at.is_(None))
    return tx.first(query.where(stack_views.c.expires_at > tx.now), StackView)


def list_open_views(tx: Tx, org: OrgId, install: str) -> Sequence[StackView]:
    """List the links of an install that still work, oldest first."""
    return tx.all(
        _select_open(tx, org, install).order_by(stack_views.c.created_at, stack_views.c.id),
        StackView,
    )


def revoke_view(tx: Tx, org: OrgId, install: str, view: str) -> bool:
    """Revoke a link that still works; return whether there was one."""
    mine = (stack_views.c.org_id == org, stack_views.c.install_id == install)
    open_one = (stack_views.c.id == view, stack_views.c.revoked_at.is_(None))
    done = tx.run(update(stack_views).where(*mine, *open_one).values(revoked_at=tx.now))
    return done.rowcount > 0


def revoke_views(tx: Tx, org: OrgId, install: str) -> None:
    """Revoke all links of an install."""
    mine = (stack_views.c.org_id == org, stack_views.c.install_id == install)
    open_ones = stack_views.c.revoked_at.is_(None)
    tx.run(update(stack_views).where(*mine, open_ones).values(revoked_at=tx.now))


def _select_open(tx: Tx, org: OrgId, install: str) -> Select[tuple[object, ...]]:
    mine = (stack_views.c.org_id == org, stack_views.c.install_id == install)
    good = (stack_views.c.revoked_at.is_(None), stack_views.c.expires_at > tx.now)
    return _SELECT.where(*mine, *good)
