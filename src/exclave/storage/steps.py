"""Queries for the steps of workflows; `workflows.py` loads them together with their workflow."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import Column, ColumnElement, Integer, Text, bindparam, cast, func, select

from exclave.base.json_values import JsonObject
from exclave.domain.identity import OrgId
from exclave.domain.jobs import JobId
from exclave.domain.workflow_records import StepRecord
from exclave.domain.workflows import (
    NewStep,
    NewWorkflow,
    Step,
    StepKind,
    StepState,
    WorkflowId,
    WorkflowKey,
)
from exclave.storage.engine.database import Tx
from exclave.storage.engine.statements import Deferred, Prepared
from exclave.storage.tables.work import jobs, steps

_NO_OUTPUTS: JsonObject = {}


def add_steps(tx: Tx, new: Sequence[NewWorkflow]) -> None:
    """Store the steps of workflows, all pending."""
    rows = [
        _write_step(workflow, position, step)
        for workflow in new
        for position, step in enumerate(workflow.steps)
    ]
    tx.insert_each(steps, rows)


def _write_step(new: NewWorkflow, position: int, step: NewStep) -> dict[str, object]:
    return {
        "org_id": new.org,
        "workflow_id": new.id,
        "position": position,
        "name": step.name,
        "kind": step.kind,
        "state": StepState.PENDING,
        "needs": step.needs,
        "lanes": step.lanes,
        "mutating": step.mutating,
        "spec": step.spec,
        "outputs": _NO_OUTPUTS,
    }


def match_keys(workflow: Column[str]) -> tuple[ColumnElement[bool], ...]:
    """Return the condition for some workflows as two lists: SQLite would scan for a list of pairs.

    The lists also match a workflow id in the org of another; the caller drops such rows.
    """
    org = workflow.table.c.org_id.in_(bindparam("orgs", expanding=True))
    return (org, workflow.in_(bindparam("workflows", expanding=True)))


def list_keys(keys: Iterable[WorkflowKey]) -> dict[str, list[str]]:
    """Return the parameters of `match_keys`."""
    return {"orgs": sorted({key[0] for key in keys}), "workflows": sorted({key[1] for key in keys})}


class LightStep(NamedTuple):
    """The columns that decisions need: specifications and outputs are not loaded.

    It begins with the fields of `Step`, in their order.
    """

    position: int
    name: str
    kind: StepKind
    state: StepState
    needs: tuple[int, ...]
    lanes: tuple[str, ...]
    mutating: bool
    digest: str
    attempt: int
    reason: str
    org_id: OrgId
    workflow_id: WorkflowId
    job_id: JobId | None

    def as_step(self) -> Step:
        """Return the step; made from a slice, as every event makes one for each step."""
        return Step._make(self[:_STEP_FIELDS])


_STEP_FIELDS = len(Step._fields)
_LIGHT = tuple(steps.c[name] for name in LightStep._fields)
_STEPS_OF = Prepared(
    select(*_LIGHT)
    .where(*match_keys(steps.c.workflow_id))
    .order_by(steps.c.org_id, steps.c.workflow_id, steps.c.position),
    LightStep,
)


def ask_steps(
    tx: Tx, keys: Sequence[WorkflowKey]
) -> Callable[[], dict[WorkflowKey, list[LightStep]]]:
    """Ask for the steps of workflows; return a function that reads them."""
    if not keys:
        return dict
    asked = tx.select_later(_STEPS_OF, **list_keys(keys))

    def read() -> dict[WorkflowKey, list[LightStep]]:
        by_workflow: dict[WorkflowKey, list[LightStep]] = {}
        for step in asked():
            by_workflow.setdefault((step.org_id, step.workflow_id), []).append(step)
        return by_workflow

    return read


class _Documents(NamedTuple):
    position: int
    name: str
    spec: JsonObject
    outputs: JsonObject


_SOME = (
    steps.c.org_id == bindparam("org"),
    steps.c.workflow_id == bindparam("workflow"),
    steps.c.position.in_(bindparam("indexes", expanding=True)),
)
_DOCUMENTS = Prepared(
    select(steps.c.position, steps.c.name, steps.c.spec, steps.c.outputs).where(*_SOME), _Documents
)


def load_specs(tx: Tx, key: WorkflowKey, indexes: Sequence[int]) -> dict[int, JsonObject]:
    """Load the specifications of some steps."""
    documents = tx.all(_DOCUMENTS, org=key[0], workflow=key[1], indexes=list(indexes))
    return {step.position: step.spec for step in documents}


def load_outputs(tx: Tx, key: WorkflowKey, indexes: Sequence[int]) -> dict[str, JsonObject]:
    """Load the outputs of some steps, by step name."""
    documents = tx.all(_DOCUMENTS, org=key[0], workflow=key[1], indexes=list(indexes))
    return {step.name: step.outputs for step in documents}


class _Size(NamedTuple):
    size: int | None


_SIZES = Prepared(
    select(func.sum(func.length(cast(steps.c.outputs, Text)), type_=Integer).label("size")).where(
        *_SOME
    ),
    _Size,
)


def measure_outputs(tx: Tx, key: WorkflowKey, indexes: Sequence[int]) -> int:
    """Return the number of characters of the outputs of some steps together."""
    return tx.one(_SIZES, org=key[0], workflow=key[1], indexes=list(indexes)).size or 0


def set_spec(tx: Tx, key: WorkflowKey, index: int, spec: JsonObject) -> None:
    """Replace the specification of a step, for its next attempt."""
    at = {"org_id": key[0], "workflow_id": key[1], "position": index}
    tx.update_each(steps, [{**at, "spec": dict(spec)}])


_RECORDS = Prepared(
    select(
        *(steps.c[name] for name in StepRecord._fields if name in steps.c),
        jobs.c.state.label("job_state"),
        jobs.c.kind.label("job_kind"),
    )
    .outerjoin(jobs, (jobs.c.org_id == steps.c.org_id) & (jobs.c.id == steps.c.job_id))
    .where(steps.c.org_id == bindparam("org"), steps.c.workflow_id == bindparam("workflow"))
    .order_by(steps.c.position),
    StepRecord,
)


def ask_step_records(tx: Tx, org: OrgId, workflow: WorkflowId) -> Deferred[StepRecord]:
    """Ask for all of a workflow's steps with the states of their jobs."""
    return tx.select_later(_RECORDS, org=org, workflow=workflow)


def list_steps(tx: Tx, org: OrgId, workflow: WorkflowId) -> Sequence[StepRecord]:
    """List all of a workflow's steps with the states of their jobs."""
    return tx.all(_RECORDS, org=org, workflow=workflow)
