"""Which schedules an install has: those that its config names."""

from collections.abc import Iterator

from exclave.control.cron import find_next
from exclave.control.deps import Deps
from exclave.domain.identity import OrgId
from exclave.storage import configs, schedules
from exclave.storage.database import AnyRow, Tx

ACTION, DRIFT = "action", "drift"


def refresh_schedules(tx: Tx, deps: Deps, org: OrgId, install: str, config: AnyRow) -> None:
    """Make the schedules of an install those of its config; what stays keeps its next tick."""
    wanted = dict(_list_wanted(tx, org, config))
    for row in schedules.list_schedules(tx, org, install):
        cron = wanted.pop((row.kind, row.subject), None)
        if cron is None:
            schedules.drop_schedule(tx, org, row.id)
        elif cron != row.cron:
            values = {"cron": cron, "next_at": find_next(cron, tx.now)}
            schedules.update_schedule(tx, org, row.id, values)
    for (kind, subject), cron in wanted.items():
        schedules.add_schedule(tx, {
            "org_id": org, "id": deps.ids.new("sch"), "install_id": install, "kind": kind,
            "subject": subject, "cron": cron, "next_at": find_next(cron, tx.now),
        })  # fmt: skip
    tx.wake("schedules")


def _list_wanted(tx: Tx, org: OrgId, config: AnyRow) -> Iterator[tuple[tuple[str, str], str]]:
    for action in config.outline["actions"]:
        for trigger in action["triggers"]:
            if trigger["type"] == "cron" and trigger.get("cron"):
                yield (ACTION, action["name"]), trigger["cron"]
    parts = [("sandbox", configs.find_part(tx, org, config.id, "sandbox"))]
    found = configs.list_parts(tx, org, config.id, "component")
    parts += [(f"component:{row.name}", row) for row in found]
    for part, row in parts:
        cron = "" if row is None else str(row.value.get("drift_schedule", ""))
        if cron and "{{" not in cron:
            yield (DRIFT, part), cron
