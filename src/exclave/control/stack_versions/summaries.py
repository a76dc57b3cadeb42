"""Summaries of the Stacks of installs in clouds, as `installs get` shows them."""

from exclave.base.json_values import JsonObject, object_or_empty, text_or_empty
from exclave.control.stack_versions.versions import show_state
from exclave.domain.identity import OrgId
from exclave.domain.installs import AppInstall
from exclave.domain.stacks import StackVersion
from exclave.stacks.registry import find_cloud_stack
from exclave.storage import stacks
from exclave.storage.engine.database import Tx
from exclave.wire.installs import StackSummary


def summarise_stack(tx: Tx, org: OrgId, install: AppInstall) -> StackSummary | None:
    """Return what the customer runs and what waits for them; None for `local`."""
    if find_cloud_stack(install.target) is None:
        return None
    newest = stacks.find_newest(tx, org, install.id)
    if newest is None:
        return None
    run = stacks.find_run(tx, org, install.id)
    shown = run or newest
    report: JsonObject = (run.report if run else None) or {}
    roles = object_or_empty(report.get("roles"))
    machine = object_or_empty(report.get("machine"))
    return StackSummary(
        state=show_state(shown, newest, tx.now),
        running=run.version if run else None,
        newest=newest.version,
        mode=text_or_empty(report.get("mode")),
        roles_off=sorted(name for name, is_on in roles.items() if is_on is False),
        machine=" ".join(
            filter(None, (text_or_empty(machine.get(key)) for key in ("id", "type", "zone")))
        ),
        program=_show_program(object_or_empty(report.get("program"))),
        leaving=_show_leaving(report),
        beacon="" if run else _show_beacon(newest),
    )


def _show_program(program: JsonObject) -> str:
    """Return the version of the runner program and what keeps another one away."""
    pinned = "pinned by the customer" if program.get("updates") == "pinned" else ""
    parts = (text_or_empty(program.get("version")), pinned, text_or_empty(program.get("problem")))
    return ", ".join(filter(None, parts))


def _show_leaving(report: JsonObject) -> str:
    """Return why the last machine went; a report of the next one replaces it."""
    reason, at = text_or_empty(report.get("leaving")), text_or_empty(report.get("leaving_at"))
    return f"{reason} since {at}" if reason else ""


def _show_beacon(version: StackVersion) -> str:
    """Return what a machine says that has proved nothing."""
    if version.beacon is None:
        return ""
    stage, note = version.beacon["stage"], version.beacon["note"]
    message = f"{stage}: {note}" if note else str(stage)
    return f"unverified: a machine that claims to be it says `{message}`"
