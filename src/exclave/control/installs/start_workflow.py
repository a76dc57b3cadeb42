"""Beginning the workflows of an install: outline, steps, rows, first moves, in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from exclave.base.errors import Conflict, InvalidInput, NotFound
from exclave.control.deps import Deps
from exclave.control.four_eyes import is_on
from exclave.control.installs.outline import load_outline
from exclave.control.progress.advance import advance
from exclave.control.progress.lane_turns import refuse_crowd
from exclave.control.progress.stack_waits import answer_active
from exclave.control.progress.workflow_events import WorkflowEvent
from exclave.domain.configs import Config
from exclave.domain.four_eyes import Author, needs_script_gate
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.installs import AppInstall, InstallState
from exclave.domain.intents import StepIntent, WorkflowValues
from exclave.domain.workflows import NewStep, NewWorkflow, WorkflowId
from exclave.domain.workflows import WorkflowKind as WorkflowKind
from exclave.flow.plans.drafts import Draft
from exclave.flow.plans.outline import Outline
from exclave.flow.plans.outline import Request as Request
from exclave.flow.plans.script_gates import ask_for_every_plan, put_gate_before_scripts
from exclave.flow.plans.types import plan_steps
from exclave.storage import app_installs, configs, installs, workflows
from exclave.storage.engine.database import Tx
from exclave.storage.engine.types import write_json

MOST_STEPS = 2_000
MOST_BYTES = 4 * 1024 * 1024
_BEGINNING = {
    WorkflowKind.PROVISION: InstallState.PROVISIONING,
    WorkflowKind.DEPROVISION: InstallState.DEPROVISIONING,
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
    # A report of its Stack waits for this lock, and then finds the workflow that waits for it.
    installs.lock_install(tx, org, install)
    app_install, config = _find(tx, org, install)
    _refuse_gone(app_install, kind)
    if kind is not WorkflowKind.DEPROVISION:  # it makes room
        deps.exhausted_quotas.begin_work(deps.quotas, org)
        refuse_crowd(tx, org, QueueId(install))
    request = request or Request()
    asks_two = is_on(tx, org)
    drafts = _plan(tx, by, app_install, config, kind, request, asks_two=asks_two)
    values = WorkflowValues(config.id, str(kind), request.env, request.role, request.runbook_inputs)
    _refuse_size(len(drafts), values)
    approves = app_install.approves_all if approve_all is None else approve_all
    workflow = NewWorkflow(
        org=org,
        id=WorkflowId(deps.ids.new("wfl")),
        queue=QueueId(install),
        name=str(kind),
        author=by,
        steps=_make_steps(drafts, values),
        kind=kind,
        approve_all=approves and not asks_two,
        plan_only=request.plan_only,
        labels=labels or {},
        sealed=sealed,
    )
    _store_and_begin(tx, deps, workflow, kind)
    return workflow.id


def _find(tx: Tx, org: OrgId, install: str) -> tuple[AppInstall, Config]:
    """Return an install and the config that it is at."""
    app_install = app_installs.find_app_install(tx, org, install)
    if app_install is None:
        raise NotFound("there is no such install of an app")
    config = configs.find_config(tx, org, app_install.config_id)
    if config is None:
        raise NotFound("the install's config is gone")
    return app_install, config


def _plan(
    tx: Tx,
    by: Author,
    install: AppInstall,
    config: Config,
    kind: WorkflowKind,
    request: Request,
    *,
    asks_two: bool,
) -> Sequence[Draft]:
    """Return the steps; if two persons are required, with gates for plans and scripts."""
    outline = _narrow(load_outline(tx, config.org_id, install, config), request)
    outline = _specialise(outline, request)
    if asks_two:
        outline = ask_for_every_plan(outline)
    drafts = plan_steps(kind, outline, request)
    if asks_two and needs_script_gate(by, config.author, install.config_by):
        return put_gate_before_scripts(drafts)
    return drafts


def _store_and_begin(tx: Tx, deps: Deps, workflow: NewWorkflow, kind: WorkflowKind) -> None:
    org, install = workflow.org, str(workflow.queue)
    workflows.add_workflow(tx, workflow)
    if kind in _BEGINNING:
        app_installs.set_state(tx, org, install, _BEGINNING[kind])
    advance(tx, deps, [WorkflowEvent(org, workflow.id)])
    answer_active(tx, deps, org, install)
    tx.wake(f"install:{install}")


def _refuse_size(steps: int, values: WorkflowValues) -> None:
    """Refuse what would take long to store: every step carries what the workflow was given."""
    size = steps * len(write_json(values.to_json()))
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


def _narrow(outline: Outline, request: Request) -> Outline:
    """Return the outline, without hooks for a plan alone; refuse components that do not exist."""
    known = {component.name for component in outline.components}
    unknown = sorted(set(request.components) - known)
    if unknown:
        raise InvalidInput(
            f"the app has no component `{unknown[0]}`",
            hint=f"Its components: {', '.join(sorted(known)) or 'none'}.",
        )
    if not request.plan_only:
        return outline
    return replace(outline, hooks=())


def _specialise(outline: Outline, request: Request) -> Outline:
    """Return the outline in which the components of a rollback or take-over say so."""
    if request.rollback_to is None and not request.take_over and not request.adopt:
        return outline
    components = tuple(
        replace(
            component,
            rollback_to=request.rollback_to,
            take_over=request.take_over,
            adopt=request.adopt,
        )
        if component.name in request.components or not request.components
        else component
        for component in outline.components
    )
    return replace(outline, components=components)


def _refuse_gone(install: AppInstall, kind: WorkflowKind) -> None:
    if install.state is InstallState.DEPROVISIONED and kind is not WorkflowKind.PROVISION:
        raise Conflict(
            f"the install `{install.name}` is deprovisioned",
            hint=f"Provision it again: exclave installs provision {install.name}.",
        )


def _make_steps(drafts: Sequence[Draft], values: WorkflowValues) -> list[NewStep]:
    positions = {draft.name: position for position, draft in enumerate(drafts)}
    return [
        NewStep(
            name=draft.name,
            kind=draft.kind,
            needs=tuple(positions[need] for need in dict.fromkeys(draft.needs)),
            lanes=tuple(draft.lanes),
            mutating=draft.mutating,
            intent=StepIntent(draft.intent, values).to_json() if draft.intent else None,
        )
        for draft in drafts
    ]
