"""Build API replies about installs."""

from collections.abc import Mapping

from exclave.control.attest import pins
from exclave.control.deps import Deps
from exclave.control.dispatch.runners import write_runner
from exclave.control.installs.cloud_accounts import summarise_identity
from exclave.control.stack_versions.summaries import summarise_stack
from exclave.control.workflows import replies
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.installs import AppInstall, Drift, Install, InstallPart, PartState, may_exist
from exclave.domain.queues import Lane
from exclave.domain.stacks import Cloud
from exclave.storage import configs, install_parts, queues, runners, workflows
from exclave.storage.engine.database import Tx
from exclave.wire.cloud_accounts import CloudAccountReply
from exclave.wire.installs import InstallDetail, InstallReply, PartReply
from exclave.wire.jobs import LaneReply

_SHOWN = 5
"""How many of the last workflows are shown."""


def summarise_install(install: Install, workflow: str | None = None) -> InstallReply:
    """Return an install as lists show it."""
    if not isinstance(install, AppInstall):
        return InstallReply(
            id=install.id,
            name=install.name,
            labels=dict(install.labels),
            created_at=install.created_at,
            workflow_id=workflow,
        )
    return InstallReply(
        id=install.id,
        name=install.name,
        labels=dict(install.labels),
        created_at=install.created_at,
        app_id=install.app_id,
        app=install.app_name,
        state=install.state,
        target=install.target,
        **install.place._asdict(),
        config_version=install.config_version,
        newest_version=install.newest_version,
        approve_all=install.approves_all,
        approval_option=install.approval,
        here=install.here,
        managed_by=install.managed_by,
        workflow_id=workflow,
    )


def show_install(tx: Tx, deps: Deps, org: OrgId, install: Install) -> InstallDetail:
    """Return an install with its parts, lanes, runners and last workflows."""
    queue = QueueId(install.id)
    app = install if isinstance(install, AppInstall) else None
    runner_rows = runners.list_runners(tx, org, "", 20, queue)
    running = runners.count_running(tx, org, [runner.id for runner in runner_rows])
    last = workflows.list_workflows(tx, org, before="", limit=_SHOWN, queue=queue, state=None)
    return InstallDetail(
        **dict(summarise_install(install)),
        component_toggles=dict(app.toggles) if app else {},
        component_overrides={name: dict(texts) for name, texts in app.overrides.items()}
        if app
        else {},
        cloud_account=_show_account(tx, org, app),
        lanes=[_show_lane(lane) for lane in queues.list_lanes(tx, org, queue)],
        parts=list_parts(tx, org, app) if app else [],
        stack=summarise_stack(tx, org, app) if app else None,
        runners=[write_runner(deps, r, tx.now, running.get(r.id, 0)) for r in runner_rows],
        workflows=[replies.summarise_workflow(workflow) for workflow in last],
    )


def _show_account(tx: Tx, org: OrgId, install: AppInstall | None) -> CloudAccountReply | None:
    """Return whose machine may be the runner; None for an install in no cloud."""
    if install is None or install.target is Cloud.LOCAL:
        return None
    return summarise_identity(pins.find_identity(tx, org, install))


def list_parts(tx: Tx, org: OrgId, install: AppInstall) -> list[PartReply]:
    """List the sandbox and all components in deploy order, then what the config dropped."""
    parts = {part.name: part for part in install_parts.list_parts(tx, org, install.id)}
    wanted = read_hashes(tx, org, install.config_id)
    deployed = {part.config_id for part in parts.values() if part.config_id}
    hashes = {config: read_hashes(tx, org, config) for config in deployed}
    versions = {config: _read_version(tx, org, config) for config in deployed}
    left = [name for name in parts if name not in wanted and may_exist(parts[name].state)]
    return [
        _show_part(name, parts.get(name), wanted, hashes, versions) for name in [*wanted, *left]
    ]


def read_hashes(tx: Tx, org: OrgId, config_id: str) -> dict[str, str]:
    """Return the content hash of each part of a config, in deploy order."""
    config = configs.find_config(tx, org, config_id)
    if config is None:
        return {}
    outline = config.outline
    hashes = {component["name"]: str(component["hash"]) for component in outline["components"]}
    sandbox = {"sandbox": str(outline["sandbox"]["hash"])} if outline["sandbox"] else {}
    ordered = [name for group in outline["order"] for name in group]
    return {**sandbox, **{f"component:{name}": hashes[name] for name in ordered}}


def _show_part(
    name: str,
    part: InstallPart | None,
    wanted: Mapping[str, str],
    hashes: Mapping[str, Mapping[str, str]],
    versions: Mapping[str, int | None],
) -> PartReply:
    if part is None:
        return PartReply(
            part=name,
            state=PartState.ABSENT,
            drift=Drift.UNKNOWN,
            config_version=None,
            is_current=False,
            message="",
            workflow_id=None,
            changed_at=None,
            drift_at=None,
        )
    config = part.config_id or ""
    return PartReply(
        part=name,
        state=part.state,
        drift=part.drift,
        config_version=versions.get(config),
        is_current=bool(config) and hashes[config].get(name) == wanted.get(name),
        message=part.message,
        workflow_id=part.workflow_id,
        changed_at=part.changed_at,
        drift_at=part.drift_at,
        health=part.health,
        health_reason=part.health_reason,
        health_at=part.health_at,
    )


def _read_version(tx: Tx, org: OrgId, config_id: str) -> int | None:
    config = configs.find_config(tx, org, config_id)
    return None if config is None else int(config.version)


def _show_lane(lane: Lane) -> LaneReply:
    return LaneReply(
        name=lane.name,
        state=lane.state,
        epoch=lane.epoch,
        execution_id=lane.execution_id,
        reason=lane.reason,
        changed_at=lane.changed_at,
    )
