"""Build the reply to a sync: findings, differences, builds, affected installs."""

from collections.abc import Sequence

from exclave.appconfig.stored.parts import FrozenApp
from exclave.control.apps.affected_installs import find_impact
from exclave.control.apps.apps import show_config
from exclave.control.apps.config_diff import diff_parts
from exclave.control.apps.configs import show_parts
from exclave.control.workers.read_app import ShownFinding
from exclave.domain.apps import App
from exclave.domain.configs import Config
from exclave.domain.identity import OrgId
from exclave.storage import builds, configs
from exclave.storage.builds import StartedBuild
from exclave.storage.engine.database import Tx
from exclave.wire.apps import AppFinding, ConfigDiffReply, SyncReply


def show_findings(findings: Sequence[ShownFinding]) -> list[AppFinding]:
    """Return the findings about a directory as the API shows them."""
    return [
        AppFinding(
            severity=finding.diagnostic.severity,
            code=finding.diagnostic.code,
            file=finding.diagnostic.file,
            line=finding.diagnostic.line,
            column=finding.diagnostic.column,
            message=finding.diagnostic.message,
            hint=finding.diagnostic.hint,
            text=finding.text,
        )
        for finding in findings
    ]


def show_unchanged(tx: Tx, org: OrgId, app: App, config: Config, made: Sequence[str]) -> SyncReply:
    """Return the reply for content that equals the current version, with repeated builds."""
    started = builds.list_started(tx, org, made)
    diff = ConfigDiffReply(
        app=app.name,
        before=config.version,
        after=config.version,
        parts=[],
        builds=[row.part for row in started],
        installs=[],
    )
    return SyncReply(
        app=app.name,
        changed=False,
        dry_run=False,
        findings=[],
        diff=diff,
        config=show_config(config, current=True),
        workflow_id=_find_workflow(started),
    )


def show_stored(
    tx: Tx, org: OrgId, app: App, config: Config, frozen: FrozenApp, made: Sequence[str]
) -> SyncReply:
    """Return the reply for a new version: its changes and its builds."""
    before = configs.find_config(tx, org, app.config_id) if app.config_id else None
    old = configs.list_all_parts(tx, org, before.id) if before else []
    folders = before.outline.get("folders", {}) if before else {}
    started = builds.list_started(tx, org, made)
    impact = find_impact(tx, org, app.id, frozen.parts)
    diff = ConfigDiffReply(
        app=app.name,
        before=before.version if before else None,
        after=config.version,
        parts=show_parts(diff_parts(old, frozen.parts, folders, frozen.folders)),
        builds=[row.part for row in started],
        installs=impact.installs,
        more_installs=impact.more,
    )
    return SyncReply(
        app=app.name,
        changed=True,
        dry_run=False,
        findings=[],
        diff=diff,
        config=show_config(config, current=True),
        workflow_id=_find_workflow(started),
    )


def show_tried(reply: SyncReply, before: Config | None) -> SyncReply:
    """Return the reply of a dry run from that of a sync."""
    diff = reply.diff.model_copy(update={"after": None}) if reply.changed else reply.diff
    current = None if before is None else show_config(before, current=True)
    return reply.model_copy(
        update={"dry_run": True, "diff": diff, "config": current, "workflow_id": None}
    )


def _find_workflow(started: Sequence[StartedBuild]) -> str | None:
    return next((row.workflow_id for row in started if row.workflow_id), None)
