"""`exclave actions` and `exclave runbooks`: list and run the actions and runbooks of an install."""

import click

from exclave.cli.deps import Session, verb
from exclave.cli.inputs import build, read_pairs
from exclave.cli.lookup import find_install, gather, page_options
from exclave.cli.output import show_time
from exclave.cli.root import SuggestingGroup
from exclave.cli.workflows.watch import watch_workflow
from exclave.wire.actions import (
    ActionReply,
    RunAction,
    RunReply,
    RunRunbook,
    TriggerReply,
    WorkflowReply,
)
from exclave.wire.model import Page

group = SuggestingGroup("actions", help="Run actions of an install and list their runs.")
runbooks = SuggestingGroup("runbooks", help="Run runbooks of an install.")

_install = click.argument("install", metavar="INSTALL")
_wait = click.option(
    "--wait", is_flag=True, help="Wait for the workflow to end and show its progress."
)


@verb(group, "list")
@_install
async def list_actions(session: Session, install: str) -> None:
    """List the actions of an install."""
    page = await session.client.actions.list(await find_install(session, install))
    rows = [
        [item.name, ", ".join(map(_format_trigger, item.triggers)), *_format_last(item)]
        for item in page.items
    ]
    session.out.show(page, session.out.table(["NAME", "RUNS ON", "LAST RUN", "STATE"], rows))


@verb(group, "run")
@_install
@click.argument("action")
@click.option(
    "--env",
    "env",
    multiple=True,
    metavar="NAME=VALUE",
    help="Environment variable. Can be repeated.",
)
@click.option("--role", default="", help="Name of the role to run the action with.")
@_wait
async def run_action(
    session: Session, install: str, action: str, env: tuple[str, ...], role: str, *, wait: bool
) -> int | None:
    """Run an action now."""
    body = build(RunAction, action=action, env=read_pairs(env, "--env"), role=role)
    begun = await session.client.actions.run(await find_install(session, install), body)
    return await _show_begun(session, begun, wait=wait)


@verb(group, "runs")
@_install
@click.option("--action", help="Only show runs of this action.")
@page_options
async def list_runs(
    session: Session, install: str, action: str | None, limit: int, cursor: str | None
) -> None:
    """List runs of actions, newest first."""
    install_id = await find_install(session, install)

    async def fetch(at: str | None, most: int) -> Page[RunReply]:
        return await session.client.actions.list_runs(install_id, at, most, action=action)

    page = await gather(session, fetch, limit, cursor)
    rows = [
        [
            item.id,
            item.action,
            item.trigger,
            item.state,
            show_time(item.started_at),
            show_time(item.finished_at),
            item.message,
        ]
        for item in page.items
    ]
    headers = ["ID", "ACTION", "TRIGGER", "STATE", "STARTED", "FINISHED", "MESSAGE"]
    session.out.show(page, session.out.table(headers, rows))


@verb(runbooks, "list")
@_install
async def list_runbooks(session: Session, install: str) -> None:
    """List the runbooks of an install."""
    page = await session.client.actions.list_runbooks(await find_install(session, install))
    rows = [
        [
            item.name,
            item.description,
            ", ".join(declared.name for declared in item.inputs),
            "; ".join(item.steps),
        ]
        for item in page.items
    ]
    session.out.show(page, session.out.table(["NAME", "DESCRIPTION", "INPUTS", "STEPS"], rows))


@verb(runbooks, "run")
@_install
@click.argument("runbook")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Value of an input. Can be repeated.",
)
@_wait
async def run_runbook(
    session: Session, install: str, runbook: str, inputs: tuple[str, ...], *, wait: bool
) -> int | None:
    """Run a runbook now."""
    body = build(RunRunbook, runbook=runbook, inputs=read_pairs(inputs, "--input"))
    begun = await session.client.actions.run_runbook(await find_install(session, install), body)
    return await _show_begun(session, begun, wait=wait)


async def _show_begun(session: Session, begun: WorkflowReply, *, wait: bool) -> int | None:
    if wait:
        return await watch_workflow(session, begun.id, begun)
    session.out.show(begun, begun.id)
    if not session.out.json_mode:
        session.out.say(f"Started. Watch it: exclave workflows watch {begun.id}")
    return None


def _format_trigger(trigger: TriggerReply) -> str:
    extra = trigger.cron or trigger.component
    return f"{trigger.type} ({extra})" if extra else trigger.type


def _format_last(action: ActionReply) -> list[str]:
    last = action.last_run
    return ["never", ""] if last is None else [show_time(last.started_at), last.state]
