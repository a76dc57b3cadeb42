"""`exclave workflows`: list, show, run and watch; `steps` and `plans` add more verbs."""

import click

from exclave.cli.deps import Session, verb
from exclave.cli.inputs import check, read_document
from exclave.cli.lookup import (
    build_option,
    find_queue,
    find_workflow,
    gather,
    install_option,
    page_options,
    workflow_argument,
)
from exclave.cli.output import show_time
from exclave.cli.root import SuggestingGroup
from exclave.cli.workflows import plans, steps
from exclave.cli.workflows.watch import watch_workflow
from exclave.wire.model import Page
from exclave.wire.workflows import NewWorkflow, WorkflowState, WorkflowSummary

group = SuggestingGroup("workflows", help="Run, watch and approve workflows.")


@verb(group, "list")
@install_option
@build_option
@click.option(
    "--state",
    type=click.Choice([state.value for state in WorkflowState]),
    help="Only show workflows in this state.",
)
@page_options
async def list_workflows(
    session: Session,
    install: str | None,
    state: str | None,
    limit: int,
    cursor: str | None,
    *,
    build: bool,
) -> None:
    """List workflows, newest first."""
    client = session.client
    queue_id = await find_queue(session, install, build=build)
    wanted = WorkflowState(state) if state else None

    async def fetch(at: str | None, most: int) -> Page[WorkflowSummary]:
        return await client.workflows.list(at, most, queue_id=queue_id, state=wanted)

    page = await gather(session, fetch, limit, cursor)
    rows = [
        [
            item.id,
            item.name,
            item.state,
            item.queue_id,
            item.created_by,
            show_time(item.created_at),
            show_time(item.finished_at),
        ]
        for item in page.items
    ]
    headers = ["ID", "NAME", "STATE", "QUEUE", "BY", "CREATED", "FINISHED"]
    session.out.show(page, session.out.table(headers, rows))


@verb(group, "get")
@workflow_argument
async def get(session: Session, workflow: str) -> None:
    """Show a workflow and the states of its steps."""
    workflow_id = await find_workflow(session, workflow)
    steps.show_workflow(session, await session.client.workflows.get(workflow_id))


@verb(group, "run")
@click.argument("file")
@click.option("--install", metavar="NAME|ID", help="Install to run it on; overrides the file.")
@build_option
@click.option("--approve-all", is_flag=True, help="Approve all gates in advance.")
@click.option("--plan-only", is_flag=True, help="Run read-only steps only.")
@click.option("--watch", is_flag=True, help="Wait for the workflow to end and show its progress.")
async def run(
    session: Session,
    file: str,
    install: str | None,
    *,
    build: bool,
    approve_all: bool,
    plan_only: bool,
    watch: bool,
) -> int | None:
    """Start the workflow in FILE (JSON or TOML, `-` reads stdin) and print its id."""
    fields = dict(read_document(file))
    queue_id = await find_queue(session, install, build=build)
    if queue_id is not None:
        fields["queue_id"] = queue_id
    elif "queue_id" not in fields:
        raise click.UsageError("pass --install NAME or --build, or set `queue_id` in the file")
    given = {"approve_all": approve_all, "plan_only": plan_only}
    fields |= {name: True for name, wanted in given.items() if wanted}
    begun = await session.client.workflows.create(check(NewWorkflow, fields, file))
    if watch:
        return await watch_workflow(session, begun.id, begun)
    session.out.show(begun, begun.id)
    if not session.out.json_mode:
        session.out.say(f"Started `{begun.name}`. Watch it: exclave workflows watch {begun.id}")
    return None


@verb(group, "watch")
@workflow_argument
async def watch(session: Session, workflow: str) -> int:
    """Show steps and logs live; exit with 1 if the workflow fails or is cancelled."""
    return await watch_workflow(session, await find_workflow(session, workflow))


for more in (steps.group, plans.workflows):
    for command in more.commands.values():
        group.add_command(command)
