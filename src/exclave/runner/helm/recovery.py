"""What is to be done about a release before it can be changed: nothing, recover it, or wait."""

from collections.abc import Sequence
from dataclasses import dataclass

from exclave.base.json_values import list_or_empty, object_or_empty, text_or_empty
from exclave.runner.helm.records import (
    EXECUTION_LABEL,
    QUEUE_LABEL,
    Driver,
    ReleaseRecord,
    mark_failed,
)
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.changes.state import PlanMark
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

MANAGER = "exclave"


@dataclass(frozen=True, slots=True)
class Recovery:
    """A record that is marked as failed before Helm is started."""

    revision: int
    status: str
    why: str

    @property
    def note(self) -> str:
        """The recovery for people."""
        return f"revision {self.revision} ({self.status}) is marked failed: {self.why}"


def decide_recovery(
    records: Sequence[ReleaseRecord],
    queue: str,
    *,
    removing: PlanMark | None = None,
    destroy: bool,
    take_over: bool,
) -> Recovery | None:
    """Return what has to be recovered; raise if somebody else is at work on the release.

    A pending record of this install is of a dead execution: the lane's epoch would not have let
    this job begin otherwise. The same is true of a record that is being uninstalled if `removing`,
    the mark of a teardown in the state of the part, is of exactly this revision: Helm writes no
    labels when it uninstalls.
    """
    last = records[-1] if records else None
    if last is None or not (last.is_pending or last.status == "uninstalling"):
        return None
    if destroy and last.status == "uninstalling":
        return None
    execution = last.labels.get(EXECUTION_LABEL, "")
    if last.is_pending and execution and last.labels.get(QUEUE_LABEL) == queue:
        why = f"the execution {execution} that did it is proven dead"
        return Recovery(last.revision, last.status, why)
    if removing is not None and removing.revision == last.revision and not last.is_pending:
        why = f"the teardown {removing.execution} that did it is proven dead"
        return Recovery(last.revision, last.status, why)
    if take_over:
        return Recovery(last.revision, last.status, "taken over because a person asked for it")
    raise WorkFailed(Reason.RELEASE_BUSY, _describe_busy(last))


async def recover(
    client: ClusterClient, driver: Driver, records: Sequence[ReleaseRecord], planned: Recovery
) -> None:
    """Mark the record as failed, unless it changed meanwhile; a second writer gets a conflict."""
    record = next((entry for entry in records if entry.revision == planned.revision), None)
    if record is None or record.status != planned.status:
        message = f"revision {planned.revision} of the release changed since the plan: plan again"
        raise WorkFailed(Reason.PLAN_STALE, message)
    value = mark_failed(driver, record, f"interrupted: {planned.why}")
    await client.replace(value, manager=MANAGER)


def _describe_busy(record: ReleaseRecord) -> str:
    metadata = object_or_empty(record.holder.get("metadata"))
    managers = {
        text_or_empty(object_or_empty(entry).get("manager"))
        for entry in list_or_empty(metadata.get("managedFields"))
    }
    since = text_or_empty(metadata.get("creationTimestamp"))
    who = ", ".join(sorted(managers - {""})) or "somebody"
    return (
        f"the release is {record.status} at revision {record.revision} since {since}, by {who}: if"
        " nobody works on it any more, deploy with `--take-over-release`"
    )
