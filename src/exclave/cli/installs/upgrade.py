"""`exclave installs upgrade`: move one or many installs to another version of their app."""

from collections.abc import Iterator

import click

from exclave.base.errors import Conflict, InvalidInput, Problem
from exclave.cli.deps import Session, verb, yes_option
from exclave.cli.errors import FAILED
from exclave.cli.inputs import build, read_pairs
from exclave.cli.installs.options import approve_option, label_option, wait_option
from exclave.cli.lookup import find_install
from exclave.cli.root import SuggestingGroup
from exclave.cli.workflows.watch import watch_workflow
from exclave.client.pages import iterate
from exclave.wire.installs import InstallReply, Upgrade, UpgradeReply
from exclave.wire.model import Page

_holder = SuggestingGroup("installs")


@verb(_holder, "upgrade")
@click.argument("installs", nargs=-1, metavar="[NAME|ID]...")
@label_option("Upgrade all installs with this label. Can be repeated.")
@click.option("--all", "everything", is_flag=True, help="Upgrade all installs.")
@click.option(
    "--app", metavar="NAME|ID", help="With --label or --all: only upgrade installs of this app."
)
@click.option("--config", type=click.IntRange(1), help="Version to use.  [default: the newest]")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Value of an input. Can be repeated.",
)
@click.option("--deploy", is_flag=True, help="Deploy the components that differ.")
@click.option("--dry-run", is_flag=True, help="Show what differs without changing anything.")
@approve_option
@yes_option
@wait_option
async def upgrade(
    session: Session,
    installs: tuple[str, ...],
    labels: tuple[str, ...],
    app: str | None,
    config: int | None,
    inputs: tuple[str, ...],
    *,
    everything: bool,
    deploy: bool,
    dry_run: bool,
    approve_all: bool,
    yes: bool,
    wait: bool,
) -> int | None:
    """Move installs to the newest version of their app; --deploy also deploys it."""
    wanted = read_pairs(labels, "--label")
    if sum(map(bool, (installs, wanted, everything))) != 1:
        raise InvalidInput("pass installs, --label or --all")
    ids = await _choose(session, installs, wanted, app)
    body = build(
        Upgrade,
        config=config,
        inputs=read_pairs(inputs, "--input"),
        deploy=deploy,
        dry_run=True,
        approve_all=approve_all or None,
    )
    planned, failed = await _ask_all(session, ids, body)
    stuck = [reply for reply in planned if reply.obstacles]
    failed = failed or bool(stuck)
    if not dry_run:
        _print_stuck(session, stuck, alone=len(ids) == 1)
        planned = [reply for reply in planned if not reply.obstacles]
    moving = [reply for reply in planned if _is_move(reply)]
    if dry_run or not moving:
        session.out.show({"installs": planned}, _write(planned))
        return FAILED if failed else None
    if not session.out.json_mode:
        session.out.say(_write(moving))
    session.confirm(f"Upgrade {_count(moving)}{' and deploy' if deploy else ''}?", yes=yes)
    real = body.model_copy(update={"dry_run": False})
    done, failed_now = await _ask_all(session, [reply.install_id for reply in moving], real)
    return await _end(session, done, wait=wait, failed=failed or failed_now)


def _print_stuck(session: Session, stuck: list[UpgradeReply], *, alone: bool) -> None:
    """Print why installs cannot be upgraded; no confirmation is asked for them."""
    for reply in stuck:
        first = reply.obstacles[0]
        if alone:
            raise Conflict(first.message, hint=first.hint)
        session.out.say(f"error: {reply.name}: {first.message}")
        session.out.say(f"hint: {first.hint}")


async def _choose(
    session: Session, installs: tuple[str, ...], labels: dict[str, str], app: str | None
) -> list[str]:
    if installs:
        return [await find_install(session, install) for install in installs]

    async def fetch(at: str | None, most: int) -> Page[InstallReply]:
        return await session.client.installs.list(at, most, app=app, labels=labels)

    return [item.id async for item in iterate(fetch) if item.app_id]


async def _ask_all(
    session: Session, ids: list[str], body: Upgrade
) -> tuple[list[UpgradeReply], bool]:
    """Request the upgrade of each install; a failure does not stop the others."""
    replies, failed = [], False
    for install_id in ids:
        try:
            replies.append(await session.client.installs.upgrade(install_id, body))
        except Problem as problem:
            if len(ids) == 1:
                raise
            failed = True
            session.out.say(f"error: {install_id}: {problem.message}")
            if problem.advice:
                session.out.say(f"hint: {problem.advice}")
    return replies, failed


async def _end(
    session: Session, done: list[UpgradeReply], *, wait: bool, failed: bool
) -> int | None:
    if not wait:
        session.out.show({"installs": done}, "\n".join(map(_format_done, done)))
        return FAILED if failed else None
    code = FAILED if failed else 0
    for reply in done:
        if reply.workflow is not None:
            code = code or await watch_workflow(session, reply.workflow.id, reply.workflow)
    return code


def _write(replies: list[UpgradeReply]) -> str:
    """Return the differences of each install as text."""
    return "\n".join(line for reply in replies for line in _list_lines(reply))


def _list_lines(reply: UpgradeReply) -> Iterator[str]:
    if not _is_move(reply):
        yield f"{reply.name}: already at config {reply.to_version}"
        return
    yield f"{reply.name}: config {reply.from_version} -> {reply.to_version}"
    for part in reply.parts:
        yield f"  {_SIGNS[part.change]} {part.part}"
    for name in reply.changed_inputs:
        yield f"  ~ value of input {name}"
    for name in reply.dropped_inputs:
        yield f"  - value of input {name}"
    if reply.new_stack:
        yield "  ! the customer has to enter more values; their Stack is informed by the upgrade"
    for obstacle in reply.obstacles:
        yield f"  ! not possible yet: {obstacle.message}"
        yield f"    {obstacle.hint}"


def _format_done(reply: UpgradeReply) -> str:
    begun = f"  exclave workflows watch {reply.workflow.id}" if reply.workflow else ""
    return f"{reply.name}: now at config {reply.to_version}{begun}"


def _is_move(reply: UpgradeReply) -> bool:
    return reply.from_version != reply.to_version or bool(reply.changed_inputs or reply.parts)


def _count(moving: list[UpgradeReply]) -> str:
    return f"`{moving[0].name}`" if len(moving) == 1 else f"{len(moving)} installs"


_SIGNS = {"added": "+", "changed": "~", "removed": "-"}
