"""Beginning the workflows of an install: outline, steps, rows, first moves, in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from exclave.base.errors import Conflict, InvalidInput, NotFound
from exclave.control.advance import Happening, advance
from exclave.control.deps import Deps
from exclave.control.install_outlines import load_outline
from exclave.control.stack_waits import answer_active
from exclave.domain.identity import OrgId
from exclave.domain.workflows import StepState, WorkflowId, WorkflowState
from exclave.flow.plans.drafts import Draft
from exclave.flow.plans.kinds import WorkflowKind as WorkflowKind
from exclave.flow.plans.outline import Outline
from exclave.flow.plans.outline import Request as Request
from exclave.flow.plans.types import plan_steps
from exclave.storage import configs, install_states, workflows
from exclave.storage.database import AnyRow, Tx

_BEGINNING = {
    WorkflowKind.PROVISION: "provisioning",
    WorkflowKind.DEPROVISION: "deprovisioning",
}
"""What an install is while such a workflow runs."""


def begin_install_workflow(
    tx: Tx, deps: Deps, org: OrgId, by: str, install: str, kind: WorkflowKind,
    request: Request | None = None, *, approve_all: bool | None = None,
    labels: Mapping[str, str] | None = None, sealed: Mapping[str, str] | None = None,
) -> WorkflowId:  # fmt: skip
    """Store a workflow of an install with all its steps, and begin."""
    row = install_states.find_app_install(tx, org, install)
    if row is None:
        raise NotFound("there is no such install of an app")
    config = configs.find_config(tx, org, row.config_id)
    if config is None:
        raise NotFound("the install's config is gone")
    _refuse_gone(row, kind)
    wish = request or Request()
    drafts = plan_steps(kind, _narrow(load_outline(tx, org, install, config), wish), wish)
    workflow = WorkflowId(deps.ids.new("wfl"))
    extra: dict[str, Any] = {"config": config.id, "kind": str(kind)}
    given = {"env": dict(wish.env), "role": wish.role, "runbook_inputs": dict(wish.runbook_inputs)}
    extra |= {name: value for name, value in given.items() if value}
    workflows.add_workflows(
        tx,
        [{
            "org_id": org, "id": workflow, "queue_id": install, "name": str(kind),
            "kind": str(kind), "state": WorkflowState.RUNNING,
            "approve_all": row.approve_all if approve_all is None else approve_all,
            "plan_only": wish.plan_only, "cancel_requested": False, "revision": 1,
            "laned": any(draft.mutating for draft in drafts), "labels": dict(labels or {}),
            "created_by": by, "sealed": dict(sealed) if sealed else None,
        }],
        _make_rows(org, workflow, drafts, extra),
    )  # fmt: skip
    if kind in _BEGINNING:
        install_states.update_app_install(tx, org, install, {"state": _BEGINNING[kind]})
    advance(tx, deps, [Happening(org, workflow)])
    answer_active(tx, deps, org, install)
    tx.wake(f"install:{install}")
    return workflow


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
            "org_id": org, "workflow_id": workflow, "position": position, "name": draft.name,
            "kind": draft.kind, "state": StepState.PENDING, "mutating": draft.mutating,
            "needs": ",".join(str(index[need]) for need in dict.fromkeys(draft.needs)),
            "lanes": ",".join(draft.lanes), "outputs": {},
            "spec": {
                "job": None, "priority": 0, "delay_s": None,
                "intent": {**extra, **draft.intent} if draft.intent else None,
            },
        }
        for position, draft in enumerate(drafts)
    ]  # fmt: skip
