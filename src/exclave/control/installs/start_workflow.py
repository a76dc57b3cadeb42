"""Beginning the workflows of an install: outline, steps, rows, first moves, in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from exclave.base.errors import Conflict, InvalidInput, NotFound
from exclave.control.deps import Deps
from exclave.control.four_eyes import is_on, read_author
from exclave.control.installs.outline import load_outline
from exclave.control.progress.advance import WorkflowEvent, advance
from exclave.control.progress.lane_turns import refuse_crowd
from exclave.control.progress.stack_waits import answer_active
from exclave.domain.four_eyes import Author, needs_script_gate
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.workflows import StepState, WorkflowId, WorkflowState
from exclave.flow.plans.drafts import Draft
from exclave.flow.plans.kinds import WorkflowKind as WorkflowKind
from exclave.flow.plans.outline import Outline
from exclave.flow.plans.outline import Request as Request
from exclave.flow.plans.script_gates import ask_for_every_plan, put_gate_before_scripts
from exclave.flow.plans.types import plan_steps
from exclave.storage import configs, install_states, installs, workflows
from exclave.storage.engine.database import AnyRow, Tx
from exclave.storage.engine.types import write_json

MOST_STEPS = 2_000
MOST_BYTES = 4 * 1024 * 1024
_BEGINNING = {
    WorkflowKind.PROVISION: "provisioning",
    WorkflowKind.DEPROVISION: "deprovisioning",
}
"""What an install is while such a workflow runs."""


def begin_install_workflow(
    tx: Tx,
    deps: Deps,
    org: OrgId,
    by: Author,
    install: str,
    kind: WorkflowKind,
    request: Request | None = None,
    *,
    approve_all: bool | None = None,
    labels: Mapping[str, str] | None = None,
    sealed: Mapping[str, str] | None = None,
) -> WorkflowId:
    """Store a workflow of an install with all its steps, and begin."""
    installs.lock_install(
        tx, org, install
    )  # a report of its Stack waits, and finds who waits for it
    row = install_states.find_app_install(tx, org, install)
    if row is None:
        raise NotFound("there is no such install of an app")
    config = configs.find_config(tx, org, row.config_id)
    if config is None:
        raise NotFound("the install's config is gone")
    _refuse_gone(row, kind)
    if kind is not WorkflowKind.DEPROVISION:  # it makes room
        deps.exhausted_quotas.begin_work(deps.quotas, org)
        refuse_crowd(tx, org, QueueId(install))
    wish = request or Request()
    outline = _narrow(load_outline(tx, org, install, config), wish)
    asks_two = is_on(tx, org)
    if asks_two:
        outline = ask_for_every_plan(outline)
    drafts = plan_steps(kind, outline, wish)
    if asks_two and needs_script_gate(by, read_author(config), row.config_by):
        drafts = put_gate_before_scripts(drafts)
    approves = row.approve_all if approve_all is None else approve_all
    workflow = WorkflowId(deps.ids.new("wfl"))
    extra: dict[str, Any] = {"config": config.id, "kind": str(kind)}
    given = {"env": dict(wish.env), "role": wish.role, "runbook_inputs": dict(wish.runbook_inputs)}
    extra |= {name: value for name, value in given.items() if value}
    _refuse_size(len(drafts), extra)
    workflows.add_workflows(
        tx,
        [
            {
                "org_id": org,
                "id": workflow,
                "queue_id": install,
                "name": str(kind),
                "kind": str(kind),
                "state": WorkflowState.RUNNING,
                "approve_all": approves and not asks_two,
                "plan_only": wish.plan_only,
                "cancel_requested": False,
                "revision": 1,
                "laned": any(draft.mutating for draft in drafts),
                "labels": dict(labels or {}),
                "created_by": by.name,
                "by_person": by.person,
                "by_token": by.token,
                "sealed": dict(sealed) if sealed else None,
            }
        ],
        _make_rows(org, workflow, drafts, extra),
    )
    if kind in _BEGINNING:
        install_states.update_app_install(tx, org, install, {"state": _BEGINNING[kind]})
    advance(tx, deps, [WorkflowEvent(org, workflow)])
    answer_active(tx, deps, org, install)
    tx.wake(f"install:{install}")
    return workflow


def _refuse_size(steps: int, extra: Mapping[str, Any]) -> None:
    """Refuse what would take long to store: every step carries what the workflow was given."""
    size = steps * len(write_json(extra))
    if size > MOST_BYTES:
        raise Conflict(
            f"the {steps} steps of the workflow would carry {size} bytes of values;"
            f" {MOST_BYTES} are possible",
            hint="Give shorter values, or put them into inputs of the install.",
        )
    if steps > MOST_STEPS:
        raise Conflict(
            f"the workflow would have {steps} steps; {MOST_STEPS} are possible",
            hint="Deploy some of the components at a time, or give fewer actions the same trigger.",
        )


def _narrow(outline: Outline, wish: Request) -> Outline:
    """Refuse components that do not exist, before anything is stored."""
    known = {each.name for each in outline.components}
    unknown = sorted(set(wish.components) - known)
    if unknown:
        raise InvalidInput(
            f"the app has no component `{unknown[0]}`",
            hint=f"Its components: {', '.join(sorted(known)) or 'none'}.",
        )
    if not wish.plan_only:
        return outline
    return replace(outline, hooks=())


def _refuse_gone(row: AnyRow, kind: WorkflowKind) -> None:
    if row.state == "deprovisioned" and kind is not WorkflowKind.PROVISION:
        raise Conflict(
            f"the install `{row.name}` is deprovisioned",
            hint=f"Provision it again: exclave installs provision {row.name}.",
        )


def _make_rows(
    org: OrgId, workflow: WorkflowId, drafts: Sequence[Draft], extra: Mapping[str, Any]
) -> list[dict[str, Any]]:
    index = {draft.name: position for position, draft in enumerate(drafts)}
    return [
        {
            "org_id": org,
            "workflow_id": workflow,
            "position": position,
            "name": draft.name,
            "kind": draft.kind,
            "state": StepState.PENDING,
            "mutating": draft.mutating,
            "needs": ",".join(str(index[need]) for need in dict.fromkeys(draft.needs)),
            "lanes": ",".join(draft.lanes),
            "outputs": {},
            "spec": {
                "job": None,
                "priority": 0,
                "delay_s": None,
                "intent": {**extra, **draft.intent} if draft.intent else None,
            },
        }
        for position, draft in enumerate(drafts)
    ]
