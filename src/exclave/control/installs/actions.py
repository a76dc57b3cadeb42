"""Use cases of actions: list them, list their runs, run one."""

from collections.abc import Mapping

from exclave.appconfig.model.kinds.actions import Action, ActionTrigger
from exclave.base.errors import Conflict, NotFound
from exclave.base.names import suggest
from exclave.control.access import require_on
from exclave.control.audit import record
from exclave.control.definitions import list_definitions
from exclave.control.deps import Deps
from exclave.control.installs.access import get_app_install
from exclave.control.installs.inputs import show_begun
from exclave.control.installs.start_workflow import Request, WorkflowKind, begin_install_workflow
from exclave.control.pagination import clamp, make_page
from exclave.domain.actions import ActionRun
from exclave.domain.four_eyes import Author
from exclave.domain.identity import InstallId, Right, User
from exclave.domain.schedules import NEVER, Schedule, ScheduleKind
from exclave.storage import install_parts, schedules
from exclave.storage.engine.database import Tx
from exclave.wire.actions import ActionReply, RunAction, RunReply, TriggerReply, WorkflowReply
from exclave.wire.model import Page, show_json


async def list_actions(deps: Deps, user: User, install: InstallId) -> Page[ActionReply]:
    """List the actions of the config that an install is on."""

    def read(tx: Tx) -> Page[ActionReply]:
        app_install = get_app_install(tx, user, install, Right.READ)
        crons = {
            schedule.subject: schedule
            for schedule in schedules.list_schedules(tx, user.org, install)
            if schedule.kind is ScheduleKind.ACTION
        }
        actions = list_definitions(tx, user.org, app_install.config_id, Action)
        return Page(
            items=[
                _show(tx, user, install, name, action, crons.get(name))
                for name, action in actions.items()
            ]
        )

    return await deps.db.read(read)


async def run_action(deps: Deps, user: User, install: InstallId, body: RunAction) -> WorkflowReply:
    """Start a workflow that runs an action with a manual trigger."""

    def run(tx: Tx) -> WorkflowReply:
        app_install = get_app_install(tx, user, install, Right.OPERATE, lock=True)
        _refuse_unfit(body.action, list_definitions(tx, user.org, app_install.config_id, Action))
        if body.env or body.role:
            # A variable such as PATH or BASH_ENV makes another script of it.
            require_on(tx, user, Right.APPROVE, install, noun="install")
        workflow = begin_install_workflow(
            tx,
            deps,
            user.org,
            Author.of(user),
            install,
            WorkflowKind.ACTION_RUN,
            Request(action=body.action, env=body.env, role=body.role),
        )
        record(tx, deps, user.org, user.name, "action_started", workflow, name=body.action)
        return show_begun(tx, user.org, workflow)

    return await deps.db.write(run, key=install)


async def list_runs(
    deps: Deps, user: User, install: InstallId, *, action: str | None, cursor: str, limit: int
) -> Page[RunReply]:
    """List runs of actions, newest first."""
    wanted = clamp(limit)

    def read(tx: Tx) -> Page[RunReply]:
        get_app_install(tx, user, install, Right.READ)
        rows = install_parts.list_runs(
            tx, user.org, install, action=action, before=cursor, limit=wanted + 1
        )
        return make_page(rows, wanted, show_run)

    return await deps.db.read(read)


def _refuse_unfit(name: str, actions: Mapping[str, Action]) -> None:
    if name not in actions:
        raise NotFound(f"the app has no action `{name}`", hint=suggest(name, actions))
    triggers = [trigger.type for trigger in actions[name].triggers]
    if "manual" not in triggers:
        raise Conflict(
            f"the action `{name}` cannot be run by hand: it runs on {', '.join(triggers)}",
            hint='Add a trigger of type "manual" to it and sync the app.',
        )


def _show(
    tx: Tx, user: User, install: str, name: str, action: Action, cron: Schedule | None
) -> ActionReply:
    last = install_parts.list_runs(tx, user.org, install, action=name, before="", limit=1)
    return ActionReply(
        name=name,
        triggers=[_show_trigger(trigger, cron) for trigger in action.triggers],
        steps=[step.name for step in action.steps],
        timeout=action.timeout,
        last_run=show_run(last[0]) if last else None,
    )


def _show_trigger(trigger: ActionTrigger, cron: Schedule | None) -> TriggerReply:
    is_cron = trigger.type == "cron" and cron is not None
    return TriggerReply(
        type=trigger.type,
        component=trigger.component_name,
        cron=trigger.cron_schedule,
        next_at=cron.next_at if is_cron and cron is not None and cron.next_at < NEVER else None,
        note=cron.note if is_cron and cron is not None else "",
    )


def show_run(run: ActionRun) -> RunReply:
    """Show a run."""
    return RunReply(
        id=run.id,
        action=run.action,
        trigger=run.trigger,
        state=run.state,
        workflow_id=run.workflow_id,
        step=run.step,
        message=run.message,
        outputs=show_json(run.outputs),
        started_at=run.started_at,
        finished_at=run.finished_at,
    )
