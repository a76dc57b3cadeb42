"""Rescued states, which runners could not store normally: list them, and restore one.

The control plane only moves sealed bytes. A rescued state is sealed for its own workspace, so the
runner opens it there and nowhere else.
"""

from exclave.base.errors import Conflict, NotFound
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.terraform.states import make_version
from exclave.control.terraform.versions import restore_version
from exclave.control.terraform.workspaces import find_queue, refuse_busy, show_workspace
from exclave.domain.attachments import ListedAttachment
from exclave.domain.identity import InstallId, QueueId, Right, User
from exclave.domain.jobs import ExecutionId, JobId
from exclave.domain.terraform import StateRefused, StateVersion
from exclave.storage import attachments, jobs, queues, tf_states
from exclave.storage.engine.database import Tx
from exclave.storage.engine.group_commit import Raced
from exclave.wire.model import Page
from exclave.wire.states import SealedState, StateHeader, unpack_state
from exclave.wire.terraform import RescuedState, RestoreState, TfWorkspaceDetail

RESCUED = "errored.tfstate.sealed"
_MOST = 50


async def list_rescued(
    deps: Deps, user: User, install: InstallId, workspace: str
) -> Page[RescuedState]:
    """List the rescued states of a workspace, newest first, with whether they can be restored."""

    def find(tx: Tx) -> tuple[list[ListedAttachment], StateVersion | None]:
        queue = find_queue(tx, user, install, Right.READ)
        rows = attachments.list_named(tx, user.org, queue, RESCUED, limit=_MOST)
        kept = [row for row in rows if workspace in _list_lanes(tx, user, row.job_id)]
        return kept, tf_states.find_newest(tx, user.org, queue, workspace)

    rows, newest = await deps.db.read(find)
    return Page[RescuedState](items=[await _show(deps, row, workspace, newest) for row in rows])


async def restore_state(
    deps: Deps, user: User, install: InstallId, workspace: str, body: RestoreState
) -> TfWorkspaceDetail:
    """Make a rescued state or an older version the next one, unless a job holds its lane."""
    if body.version is not None:
        return await restore_version(deps, user, install, workspace, body.version, body.reason)
    execution = ExecutionId(body.execution_id or "")
    queue, row = await deps.db.read(lambda tx: _find(tx, user, install, workspace, execution))
    state = _open(await deps.blobs.get(row.blob))
    blob = f"tf-states/{user.org}/{queue}/{deps.ids.new('tfs')}"
    await deps.blobs.put(blob, state.sealed)
    new = make_version(state.header, len(state.sealed), blob)

    def restore(tx: Tx) -> None:
        _find(tx, user, install, workspace, execution)
        queues.lock_queue(tx, user.org, queue)
        refuse_busy(tx, user, queue, workspace)
        held = (execution, row.epoch)
        if tf_states.restore_version(tx, user.org, held, queue, workspace, new) is None:
            newest = tf_states.find_newest(tx, user.org, queue, workspace)
            message = f"the rescued state cannot follow: {_find_misfit(state.header, newest)}"
            hint = "What is missing in the state: `exclave installs orphans` with `--all`."
            raise StateRefused(message, hint=hint)
        record(
            tx,
            deps,
            user.org,
            user.name,
            "tf_state_restored",
            f"{install}/{workspace}",
            reason=body.reason,
            execution=execution,
            serial=str(state.header.serial),
        )

    try:
        await deps.db.write(restore, key=queue)
    except (StateRefused, Conflict, NotFound, Raced):
        await deps.blobs.delete(blob)
        raise
    return await show_workspace(deps, user, install, workspace, None)


def _find(
    tx: Tx, user: User, install: InstallId, workspace: str, execution: ExecutionId
) -> tuple[QueueId, ListedAttachment]:
    queue = find_queue(tx, user, install, Right.OPERATE)
    rows = attachments.list_named(tx, user.org, queue, RESCUED, limit=_MOST)
    attachment = next((row for row in rows if row.execution_id == execution), None)
    if attachment is None or workspace not in _list_lanes(tx, user, attachment.job_id):
        raise NotFound(
            f"execution {execution} rescued no state of `{workspace}`",
            hint="`exclave installs tf-state rescued` lists what there is.",
        )
    return queue, attachment


def _list_lanes(tx: Tx, user: User, job_id: JobId) -> list[str]:
    job = jobs.find_job(tx, user.org, job_id)
    return [] if job is None else list(job.lanes)


def _open(data: bytes) -> SealedState:
    try:
        return unpack_state(data)
    except ValueError as error:
        message = f"the rescued state cannot be read: {error}"
        raise StateRefused(message) from error


async def _show(
    deps: Deps, row: ListedAttachment, workspace: str, newest: StateVersion | None
) -> RescuedState:
    header = _open(await deps.blobs.get(row.blob)).header
    return RescuedState(
        execution_id=row.execution_id,
        job_id=row.job_id,
        workspace=workspace,
        serial=header.serial,
        lineage=header.lineage,
        sha256=header.sha256,
        size=row.size,
        resources=len(header.resources),
        at=row.at,
        misfit=_find_misfit(header, newest),
    )


def _find_misfit(header: StateHeader, newest: StateVersion | None) -> str:
    """Return why a state cannot be the next version; empty if it can."""
    if newest is None:
        return ""
    if newest.lineage != header.lineage:
        return "it is of another lineage than the stored state"
    if newest.sha256 == header.sha256:
        return "it is stored already"
    if newest.serial >= header.serial:
        return f"its serial is {header.serial}, and the stored state is at {newest.serial}"
    return ""
