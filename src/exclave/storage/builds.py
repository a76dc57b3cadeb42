"""Queries for builds and for what each config version pins."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import insert, select, update

from exclave.domain.builds import BuildState
from exclave.domain.identity import OrgId
from exclave.storage.engine.database import AnyRow, Tx
from exclave.storage.tables.apps import apps, builds, config_builds, configs


def add_builds(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Store builds that begin now."""
    fixed = {"state": BuildState.RUNNING, "created_at": tx.now}
    tx.run(insert(builds), [{**row, **fixed} for row in rows])


def find_build(tx: Tx, org: OrgId, build: str, *, lock: bool = False) -> AnyRow | None:
    """Find a build by its id, with the name of its app."""
    query = _SELECT_SHOWN.where(builds.c.org_id == org, builds.c.id == build)
    return tx.first(query.with_for_update(of=builds) if lock else query)


def list_builds(
    tx: Tx,
    org: OrgId,
    *,
    before: str,
    limit: int,
    app: str | None = None,
    part: str | None = None,
    state: str | None = None,
    only: Sequence[str] | None = None,
) -> Sequence[AnyRow]:
    """List builds, newest first; `only` narrows to apps that the caller may see."""
    query = _SELECT_SHOWN.where(builds.c.org_id == org)
    wanted = {builds.c.app_id: app, builds.c.part: part, builds.c.state: state}
    query = query.where(*(column == value for column, value in wanted.items() if value is not None))
    if before:
        query = query.where(builds.c.id < before)
    if only is not None:
        query = query.where(builds.c.app_id.in_(only))
    return tx.all(query.order_by(builds.c.id.desc()).limit(limit))


def find_usable(tx: Tx, org: OrgId, app: str, keys: Sequence[str]) -> Mapping[str, AnyRow]:
    """Find for each key the newest build that has succeeded, or else the newest that runs."""
    rows = tx.all(
        select(builds)
        .where(builds.c.org_id == org, builds.c.app_id == app, builds.c.key.in_(keys))
        .where(builds.c.state.in_((BuildState.RUNNING, BuildState.SUCCEEDED)))
        .order_by(builds.c.id)
    )
    running = {row.key: row for row in rows if row.state == BuildState.RUNNING}
    return running | {row.key: row for row in rows if row.state == BuildState.SUCCEEDED}


def set_work(tx: Tx, org: OrgId, build: str, workflow: str, job: str | None) -> None:
    """Store the workflow and the job of a build."""
    mine = (builds.c.org_id == org, builds.c.id == build)
    tx.run(update(builds).where(*mine).values(workflow_id=workflow, job_id=job))


def end_build(tx: Tx, org: OrgId, build: str, values: Mapping[str, Any]) -> None:
    """Store how a build ended; one that has succeeded stays so."""
    mine = (builds.c.org_id == org, builds.c.id == build, builds.c.state != BuildState.SUCCEEDED)
    tx.run(update(builds).where(*mine).values(finished_at=tx.now, **values))


def find_pinned(tx: Tx, org: OrgId, config_id: str, part: str) -> AnyRow | None:
    """Find the build that a config version pins for a part."""
    query = _select_pinned(org, config_id).where(config_builds.c.part == part)
    row: AnyRow | None = tx.first(query)
    return row


def list_pinned(tx: Tx, org: OrgId, config_id: str) -> Sequence[AnyRow]:
    """List the builds that a config version pins; `pin` is the part it pins each for."""
    return tx.all(_select_pinned(org, config_id).order_by(config_builds.c.part))


def pin(tx: Tx, org: OrgId, config_id: str, part: str, build: str) -> None:
    """Make a config version use a build for a part, in place of the one before."""
    where = {"org_id": org, "config_id": config_id, "part": part}
    mine = (getattr(config_builds.c, name) == value for name, value in where.items())
    changed = tx.run(update(config_builds).where(*mine).values(build_id=build))
    if changed.rowcount == 0:
        tx.run(insert(config_builds).values(**where, build_id=build))


def has_pending(tx: Tx, org: OrgId, config_id: str, *, hold: bool = False) -> bool:
    """Whether a build that a config version pins has not ended.

    With `hold` it does not end before this transaction does, so that its end finds who waits.
    """
    pending = _select_pinned(org, config_id).where(builds.c.finished_at.is_(None)).limit(1)
    if hold:
        pending = pending.with_for_update(read=True, of=builds)
    return tx.first(pending) is not None


def list_configs_of(tx: Tx, org: OrgId, chosen: Sequence[str]) -> Sequence[AnyRow]:
    """List the config versions that pin one of these builds: `build_id`, `id`, `version`."""
    of_pin = (configs.c.org_id == org) & (configs.c.id == config_builds.c.config_id)
    return tx.all(
        select(config_builds.c.build_id, configs.c.id, configs.c.version)
        .join(config_builds, of_pin)
        .where(config_builds.c.org_id == org, config_builds.c.build_id.in_(chosen))
        .order_by(configs.c.version)
        .distinct()
    )


_SELECT_SHOWN = select(builds, apps.c.name.label("app")).join(
    apps, (apps.c.org_id == builds.c.org_id) & (apps.c.id == builds.c.app_id)
)


def _select_pinned(org: OrgId, config_id: str) -> Any:
    of_pin = (builds.c.org_id == org) & (builds.c.id == config_builds.c.build_id)
    pinned = (config_builds.c.org_id == org, config_builds.c.config_id == config_id)
    query = select(builds, config_builds.c.part.label("pin"))
    return query.join(config_builds, of_pin).where(*pinned)
