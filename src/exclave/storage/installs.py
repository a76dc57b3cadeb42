"""Queries for installs: their names and labels, and which app and config they run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    FromClause,
    Integer,
    Select,
    bindparam,
    delete,
    exists,
    insert,
    select,
    update,
)

from exclave.domain.identity import InstallId, OrgId
from exclave.domain.installs import Install
from exclave.storage.engine.database import Tx
from exclave.storage.engine.statements import Prepared
from exclave.storage.install_rows import InstallRow, read_install, select_installs
from exclave.storage.tables.installs import app_installs, install_labels, installs, schedules
from exclave.storage.tables.work import workflows


@dataclass(frozen=True, slots=True)
class Filter:
    """Which installs: all conditions hold at once."""

    apps: Sequence[str] | None = None
    """Of one of these apps; None is no condition."""
    labels: Mapping[str, str] = field(default_factory=dict)
    state: str | None = None
    name: str | None = None
    only: Sequence[str] | None = None
    """One of these ids, or of `only_apps`; None is no condition."""
    only_apps: Sequence[str] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it lets all installs pass."""
        values = (self.apps, self.state, self.name, self.only)
        return not self.labels and all(value is None for value in values)


def add_install(tx: Tx, org: OrgId, install: str, name: str, labels: Mapping[str, str]) -> None:
    """Create an install on the queue of the same id."""
    row = {"org_id": org, "id": install, "name": name, "labels": dict(labels)}
    tx.run(insert(installs).values(**row, created_at=tx.now))
    _add_labels(tx, org, install, labels)


_LOCK = Prepared(
    select(installs.c.id)
    .where(installs.c.org_id == bindparam("org"), installs.c.id == bindparam("install"))
    .with_for_update()
)


def lock_install(tx: Tx, org: OrgId, install: str) -> None:
    """Lock an install for this transaction, before its queue and anything else of it."""
    tx.execute_later(_LOCK, org=org, install=install)


def find_install(tx: Tx, org: OrgId, install: str, *, lock: bool = False) -> Install | None:
    """Find an install by id, with its app and config if it has them.

    It is locked by a statement of its own: one that waits for a lock sees the columns of other
    tables as they were before.
    """
    if lock:
        lock_install(tx, org, install)
    row = tx.first(_FIND, org=org, install=install)
    return None if row is None else read_install(row)


def find_app_of(tx: Tx, org: OrgId, install: str) -> str | None:
    """Find the app of an install."""
    mine = (app_installs.c.org_id == org, app_installs.c.install_id == install)
    row = tx.first(select(app_installs.c.app_id).where(*mine))
    return None if row is None else str(row.app_id)


def find_org_of(tx: Tx, install: str) -> OrgId | None:
    """Find the org of an install by its id, for somebody who has proved nothing."""
    query = select(installs.c.org_id).where(installs.c.id == install)
    row = tx.first(query.where(installs.c.deleted_at.is_(None)))
    return None if row is None else OrgId(row.org_id)


def find_install_named(tx: Tx, org: OrgId, name: str) -> Install | None:
    """Find an install by its name."""
    row = tx.first(_FIND_NAMED, org=org, name=name)
    return None if row is None else read_install(row)


def list_installs(
    tx: Tx, org: OrgId, after: str, limit: int, wanted: Filter | None = None
) -> Sequence[Install]:
    """List installs, oldest first.

    The ids of the page are found first, along an index that has them in order; only then the rest
    is read, for that page alone.
    """
    if wanted is None or wanted.is_empty:
        ids = [row.id for row in tx.all(_PAGE, org=org, after=after, limit=limit)]
    else:
        ids = list(tx.run(_choose(org, after, wanted).limit(limit)).scalars())
    rows = tx.all(_DETAILS, org=org, ids=ids) if ids else []
    return [read_install(row) for row in rows]


def set_labels(tx: Tx, org: OrgId, install: str, labels: Mapping[str, str]) -> None:
    """Replace all labels of an install."""
    mine = (installs.c.org_id == org, installs.c.id == install)
    tx.run(update(installs).where(*mine).values(labels=dict(labels)))
    of_install = (install_labels.c.org_id == org, install_labels.c.install_id == install)
    tx.run(delete(install_labels).where(*of_install))
    _add_labels(tx, org, install, labels)


def hide_install(tx: Tx, org: OrgId, install: str, name: str) -> None:
    """Mark an install as deleted and free its name; its history stays."""
    mine = (installs.c.org_id == org, installs.c.id == install)
    tx.run(update(installs).where(*mine).values(deleted_at=tx.now, name=f"{name}~{install}"))
    set_labels(tx, org, install, {})
    due = (schedules.c.org_id == org, schedules.c.install_id == install)
    tx.run(delete(schedules).where(*due))


def list_running(tx: Tx, org: OrgId, install: str) -> Sequence[str]:
    """List the ids of an install's running workflows."""
    mine = (workflows.c.org_id == org, workflows.c.queue_id == install)
    query = select(workflows.c.id).where(*mine, workflows.c.state == "running")
    return [str(row.id) for row in tx.all(query.order_by(workflows.c.id))]


_IN_ORG = installs.c.org_id == bindparam("org")
_NOT_DELETED = installs.c.deleted_at.is_(None)
_FIND = Prepared(
    select_installs().where(_IN_ORG, installs.c.id == bindparam("install"), _NOT_DELETED),
    InstallRow,
)
_FIND_NAMED = Prepared(
    select_installs().where(_IN_ORG, installs.c.name == bindparam("name"), _NOT_DELETED),
    InstallRow,
)


class _Id(NamedTuple):
    id: InstallId


_PAGE = Prepared(
    select(installs.c.id)
    .where(_IN_ORG, installs.c.id > bindparam("after"), _NOT_DELETED)
    .order_by(installs.c.id)
    .limit(bindparam("limit", type_=Integer)),
    _Id,
)
_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_DETAILS = Prepared(
    select_installs(app_installs.c.install_id.in_(_IDS))
    .where(_IN_ORG, installs.c.id.in_(_IDS), _NOT_DELETED)
    .order_by(installs.c.id),
    InstallRow,
)


def _choose(org: OrgId, after: str, wanted: Filter) -> Select[Any]:
    """Choose the ids; the most telling condition leads, and the others are looked up by it."""
    pairs = list(wanted.labels.items())
    of_app = wanted.apps is not None or wanted.state is not None
    if pairs:
        leads, column = install_labels, install_labels.c.install_id
        where = [*_has(install_labels, *pairs[0]), *_has_labels(org, column, pairs[1:])]
    elif of_app:
        leads, column, where = app_installs, app_installs.c.install_id, []
    else:
        leads, column, where = installs, installs.c.id, []
    query = select(column.label("id")).where(leads.c.org_id == org, column > after, *where)
    if leads is not installs:
        query = query.join(installs, (installs.c.org_id == org) & (installs.c.id == column))
    if leads is not app_installs and (of_app or wanted.only is not None):
        mine = (app_installs.c.org_id == org) & (app_installs.c.install_id == column)
        query = query.outerjoin(app_installs, mine)
    return query.where(installs.c.deleted_at.is_(None), *_narrow(wanted)).order_by(column)


def _narrow(wanted: Filter) -> list[ColumnElement[bool]]:
    where: list[ColumnElement[bool]] = []
    if wanted.apps is not None:
        where.append(app_installs.c.app_id.in_(wanted.apps))
    if wanted.state is not None:
        where.append(app_installs.c.state == wanted.state)
    if wanted.name is not None:
        where.append(installs.c.name == wanted.name)
    if wanted.only is not None:
        by_app = app_installs.c.app_id.in_(wanted.only_apps)
        where.append(installs.c.id.in_(wanted.only) | by_app)
    return where


def _has_labels(
    org: OrgId, install: ColumnElement[str], pairs: Sequence[tuple[str, str]]
) -> list[ColumnElement[bool]]:
    others = [install_labels.alias(f"label_{at}") for at in range(len(pairs))]
    return [
        exists().where(
            alias.c.org_id == org, alias.c.install_id == install, *_has(alias, key, value)
        )
        for alias, (key, value) in zip(others, pairs, strict=True)
    ]


def _has(labels: FromClause, key: str, value: str) -> tuple[ColumnElement[bool], ...]:
    return labels.c.key == key, labels.c.value == value


def _add_labels(tx: Tx, org: OrgId, install: str, labels: Mapping[str, str]) -> None:
    rows = [
        {"org_id": org, "install_id": install, "key": key, "value": value}
        for key, value in sorted(labels.items())
    ]
    if rows:
        tx.run(insert(install_labels), rows)
