"""Build API replies about installs from rows."""

from collections.abc import Mapping
from typing import Any

from exclave.control.deps import Deps
from exclave.control.dispatch.runners import show_runner_row
from exclave.control.install_state.options import read_approval, read_overrides, read_toggles
from exclave.control.workflows import replies
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.installs import Drift, PartState, may_exist
from exclave.storage import configs, install_parts, queues, runners, workflows
from exclave.storage.engine.database import AnyRow, Tx
from exclave.wire.installs import InstallDetail, InstallReply, PartReply
from exclave.wire.jobs import LaneReply

_SHOWN = 5
"""How many of the last workflows are shown."""


def show_row(row: AnyRow, workflow: str | None = None) -> InstallReply:
    """Return an install as lists show it."""
    return InstallReply(**_show_base(row), workflow_id=workflow)


def show_install(tx: Tx, deps: Deps, org: OrgId, row: AnyRow) -> InstallDetail:
    """Return an install with its parts, lanes, runners and last workflows."""
    queue = QueueId(row.id)
    found = runners.list_runners(tx, org, "", 20, queue)
    running = runners.count_running(tx, org, [each.id for each in found])
    last = workflows.list_workflows(tx, org, before="", limit=_SHOWN, queue=queue, state=None)
    return InstallDetail(
        **_show_base(row),
        component_toggles=read_toggles(row) if row.app_id else {},
        component_overrides=read_overrides(row) if row.app_id else {},
        lanes=[_show_lane(each) for each in queues.list_lanes(tx, org, queue)],
        parts=list_parts(tx, org, row) if row.config_id else [],
        runners=[show_runner_row(deps, r, tx.now, running.get(r.id, 0)) for r in found],
        workflows=[replies.summarise_workflow(each) for each in last],
    )


def list_parts(tx: Tx, org: OrgId, row: AnyRow) -> list[PartReply]:
    """List the sandbox and all components in deploy order, then what the config dropped."""
    rows = {each.part: each for each in install_parts.list_parts(tx, org, row.id)}
    wanted = read_hashes(tx, org, row.config_id)
    deployed = {each.config_id for each in rows.values() if each.config_id}
    hashes = {config: read_hashes(tx, org, config) for config in deployed}
    versions = {config: _read_version(tx, org, config) for config in deployed}
    left = [part for part in rows if part not in wanted and may_exist(rows[part].state)]
    return [_show_part(part, rows.get(part), wanted, hashes, versions) for part in [*wanted, *left]]


def read_hashes(tx: Tx, org: OrgId, config_id: str) -> dict[str, str]:
    """Return the content hash of each part of a config, in deploy order."""
    config = configs.find_config(tx, org, config_id)
    if config is None:
        return {}
    outline = config.outline
    hashes = {each["name"]: str(each["hash"]) for each in outline["components"]}
    found = {"sandbox": str(outline["sandbox"]["hash"])} if outline["sandbox"] else {}
    ordered = [name for group in outline["order"] for name in group]
    return {**found, **{f"component:{name}": hashes[name] for name in ordered}}


def _show_part(
    part: str,
    row: AnyRow | None,
    wanted: Mapping[str, str],
    hashes: Mapping[str, Mapping[str, str]],
    versions: Mapping[str, int | None],
) -> PartReply:
    if row is None:
        return PartReply(
            part=part,
            state=PartState.ABSENT,
            drift=Drift.UNKNOWN,
            config_version=None,
            is_current=False,
            message="",
            workflow_id=None,
            changed_at=None,
            drift_at=None,
        )
    config = row.config_id or ""
    return PartReply(
        part=part,
        state=row.state,
        drift=row.drift,
        config_version=versions.get(config),
        is_current=bool(config) and hashes[config].get(part) == wanted.get(part),
        message=row.message,
        workflow_id=row.workflow_id,
        changed_at=row.changed_at,
        drift_at=row.drift_at,
    )


def _read_version(tx: Tx, org: OrgId, config_id: str) -> int | None:
    config = configs.find_config(tx, org, config_id)
    return None if config is None else int(config.version)


def _show_base(row: AnyRow) -> dict[str, Any]:
    told = {
        "id": row.id,
        "name": row.name,
        "labels": row.labels,
        "created_at": row.created_at,
    }
    if row.app_id is None:
        return told
    return told | {
        "app_id": row.app_id,
        "app": row.app_name,
        "state": row.state,
        "target": row.target,
        "config_version": row.config_version,
        "newest_version": row.newest_version,
        "approve_all": row.approve_all,
        "approval_option": read_approval(row),
        "here": row.here,
        "managed_by": row.managed_by,
    }


def _show_lane(row: AnyRow) -> LaneReply:
    return LaneReply(
        name=row.name,
        state=row.state,
        epoch=row.epoch,
        execution_id=row.execution_id,
        reason=row.reason,
        changed_at=row.changed_at,
    )
