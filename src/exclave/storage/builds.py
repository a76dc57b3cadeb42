"""Queries for builds and for what each config version pins."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Select, insert, select, update

from exclave.domain.builds import (
    Build,
    BuildArtifact,
    BuildEnd,
    BuildFailure,
    BuildState,
    ListedBuild,
    NewBuild,
    PinnedBuild,
)
from exclave.domain.identity import OrgId
from exclave.domain.jobs import JobId
from exclave.domain.workflows import WorkflowId
from exclave.storage.engine.database import Tx
from exclave.storage.tables.apps import apps, builds, config_builds, configs


class StartedBuild(NamedTuple):
    """The part that a build is of, and the workflow that does it."""

    part: str
    workflow_id: WorkflowId | None


class PinningConfig(NamedTuple):
    """A config version that pins a build."""

    build_id: str
    id: str
    version: int


def add_builds(tx: Tx, org: OrgId, fresh: Sequence[NewBuild]) -> None:
    """Store builds that begin now."""
    rows = [
        {
            "org_id": org,
            "id": build.id,
            "app_id": build.app_id,
            "part": build.part,
            "key": build.key,
            "state": BuildState.RUNNING,
            "source": dict(build.source),
            "workflow_id": build.workflow_id,
            "repository": build.repository,
            "created_at": tx.now,
            "created_by": build.created_by,
        }
        for build in fresh
    ]
    tx.run(insert(builds), rows)


def find_build(tx: Tx, org: OrgId, build: str, *, lock: bool = False) -> ListedBuild | None:
    """Find a build by its id, with the name of its app."""
    query = _SELECT_LISTED.where(builds.c.org_id == org, builds.c.id == build)
    return tx.first(query.with_for_update(of=builds) if lock else query, ListedBuild)


def list_builds(
    tx: Tx,
    org: OrgId,
    *,
    before: str,
    limit: int,
    app: str | None = None,
    part: str | None = None,
    state: BuildState | None = None,
    only: Sequence[str] | None = None,
) -> Sequence[ListedBuild]:
    """List builds, newest first; `only` narrows to apps that the caller may see."""
    query = _SELECT_LISTED.where(builds.c.org_id == org)
    wanted = {builds.c.app_id: app, builds.c.part: part, builds.c.state: state}
    query = query.where(*(column == value for column, value in wanted.items() if value is not None))
    if before:
        query = query.where(builds.c.id < before)
    if only is not None:
        query = query.where(builds.c.app_id.in_(only))
    return tx.all(query.order_by(builds.c.id.desc()).limit(limit), ListedBuild)


def list_started(tx: Tx, org: OrgId, build_ids: Sequence[str]) -> Sequence[StartedBuild]:
    """Return the part and the workflow of each of these builds."""
    mine = (builds.c.org_id == org, builds.c.id.in_(build_ids))
    query = select(builds.c.part, builds.c.workflow_id).where(*mine)
    return tx.all(query.order_by(builds.c.part), StartedBuild)


def find_usable(tx: Tx, org: OrgId, app: str, keys: Sequence[str]) -> Mapping[str, Build]:
    """Find for each key the newest build that has succeeded, or else the newest that runs."""
    rows = tx.all(
        select(builds)
        .where(builds.c.org_id == org, builds.c.app_id == app, builds.c.key.in_(keys))
        .where(builds.c.state.in_((BuildState.RUNNING, BuildState.SUCCEEDED)))
        .order_by(builds.c.id),
        Build,
    )
    running = {row.key: row for row in rows if row.state is BuildState.RUNNING}
    return running | {row.key: row for row in rows if row.state is BuildState.SUCCEEDED}


def set_work(tx: Tx, org: OrgId, build: str, workflow: WorkflowId, job: JobId | None) -> None:
    """Store the workflow and the job of a build."""
    mine = (builds.c.org_id == org, builds.c.id == build)
    tx.run(update(builds).where(*mine).values(workflow_id=workflow, job_id=job))


def end_build(tx: Tx, org: OrgId, build: str, end: BuildEnd, job: JobId | None) -> None:
    """Store how a build ended, and by which job if one ran; one that has succeeded stays so."""
    mine = (builds.c.org_id == org, builds.c.id == build, builds.c.state != BuildState.SUCCEEDED)
    values = _write_end(end) if job is None else {**_write_end(end), "job_id": job}
    tx.run(update(builds).where(*mine).values(finished_at=tx.now, **values))


def find_pinned(tx: Tx, org: OrgId, config_id: str, part: str) -> PinnedBuild | None:
    """Find the build that a config version pins for a part."""
    return tx.first(_select_pinned(org, config_id).where(config_builds.c.part == part), PinnedBuild)


def list_pinned(tx: Tx, org: OrgId, config_id: str) -> Sequence[PinnedBuild]:
    """List the builds that a config version pins; `pin` is the part it pins each for."""
    return tx.all(_select_pinned(org, config_id).order_by(config_builds.c.part), PinnedBuild)


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


def list_configs_of(tx: Tx, org: OrgId, chosen: Sequence[str]) -> Sequence[PinningConfig]:
    """List the config versions that pin one of these builds."""
    of_pin = (configs.c.org_id == org) & (configs.c.id == config_builds.c.config_id)
    return tx.all(
        select(config_builds.c.build_id, configs.c.id, configs.c.version)
        .join(config_builds, of_pin)
        .where(config_builds.c.org_id == org, config_builds.c.build_id.in_(chosen))
        .order_by(configs.c.version)
        .distinct(),
        PinningConfig,
    )


_SELECT_LISTED = select(builds, apps.c.name.label("app")).join(
    apps, (apps.c.org_id == builds.c.org_id) & (apps.c.id == builds.c.app_id)
)


def _select_pinned(org: OrgId, config_id: str) -> Select[Any]:
    of_pin = (builds.c.org_id == org) & (builds.c.id == config_builds.c.build_id)
    pinned = (config_builds.c.org_id == org, config_builds.c.config_id == config_id)
    query = select(builds, config_builds.c.part.label("pin"))
    return query.join(config_builds, of_pin).where(*pinned)


def _write_end(end: BuildEnd) -> dict[str, object]:
    match end:
        case BuildArtifact():
            return {
                "state": BuildState.SUCCEEDED,
                "digest": end.digest,
                "commit": end.commit,
                "size": end.size,
                "provenance": end.provenance,
                "error": "",
            }
        case BuildFailure():
            return {"state": BuildState.FAILED, "error": end.error}
