"""Actions and runbooks of an install."""

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.idempotency import idempotent
from exclave.api.ids import InstallOf
from exclave.api.queries import RunsOf
from exclave.api.routes import UserRoute, make_router
from exclave.control.installs import actions, runbooks
from exclave.wire.actions import (
    ActionReply,
    RunAction,
    RunbookReply,
    RunReply,
    RunRunbook,
    WorkflowReply,
)
from exclave.wire.model import Page

router = make_router("/v1/installs/{install}", "actions", UserRoute)


@router.get("/actions")
async def list_actions(install: InstallOf, user: UserOf, deps: DepsOf) -> Page[ActionReply]:
    """List the actions of an install, each with its last run."""
    return await actions.list_actions(deps, user, install)


@router.post("/actions/run", status_code=202)
@idempotent()
async def run_action(
    install: InstallOf, body: RunAction, user: UserOf, deps: DepsOf
) -> WorkflowReply:
    """Run an action now."""
    return await actions.run_action(deps, user, install, body)


@router.get("/actions/runs")
async def list_action_runs(
    install: InstallOf, query: RunsOf, user: UserOf, deps: DepsOf
) -> Page[RunReply]:
    """List runs of actions, newest first."""
    return await actions.list_runs(
        deps, user, install, action=query.action, cursor=query.cursor, limit=query.limit
    )


@router.get("/runbooks")
async def list_runbooks(install: InstallOf, user: UserOf, deps: DepsOf) -> Page[RunbookReply]:
    """List the runbooks of an install."""
    return await runbooks.list_runbooks(deps, user, install)


@router.post("/runbooks/run", status_code=202)
@idempotent()
async def run_runbook(
    install: InstallOf, body: RunRunbook, user: UserOf, deps: DepsOf
) -> WorkflowReply:
    """Run a runbook now."""
    return await runbooks.run_runbook(deps, user, install, body)
