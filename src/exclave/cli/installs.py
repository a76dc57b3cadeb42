"""`exclave installs`: places at customers, and the lanes on which work happens there."""

import click

from exclave.cli.deps import Session, verb, yes_option
from exclave.cli.inputs import build, read_pairs
from exclave.cli.lookup import find_install, gather, page_options
from exclave.cli.output import show_time
from exclave.cli.root import SuggestingGroup
from exclave.wire.identity import InstallReply, NewInstall
from exclave.wire.jobs import LaneReply, ReleaseLane

group = SuggestingGroup("installs", help="Places at customers, their lanes.")


@verb(group, "list")
@page_options
async def list_installs(session: Session, limit: int, cursor: str | None) -> None:
    """List installs."""
    page = await gather(session, session.client.list_installs, limit, cursor)
    rows = [
        [install.id, install.name, show_labels(install.labels), show_time(install.created_at)]
        for install in page.items
    ]
    table = session.out.table(["ID", "NAME", "LABELS", "CREATED"], rows)
    session.out.show(page, table)


@verb(group, "create")
@click.argument("name")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="May be repeated.")
async def create(session: Session, name: str, labels: tuple[str, ...]) -> None:
    """Create an install."""
    body = build(NewInstall, name=name, labels=read_pairs(labels, "--label"))
    install = await session.client.create_install(body)
    _show(session, install)
    if not session.out.json_mode:
        session.out.say(f"\nNext: exclave runners enrol --install {install.name}")


@verb(group, "get")
@click.argument("install", metavar="NAME|ID")
async def get(session: Session, install: str) -> None:
    """Show an install and the state of its lanes."""
    found = await session.client.get_install(await find_install(session, install))
    _show(session, found)
    blocked = [lane.name for lane in found.lanes if lane.state == "needs_reconcile"]
    if blocked and not session.out.json_mode:
        command = f"exclave installs release-lane {found.name} {blocked[0]} --reason …"
        session.out.say(f"\nA lane needs a look: check its resources, then `{command}`.")


@verb(group, "release-lane")
@click.argument("install", metavar="NAME|ID")
@click.argument("lane")
@click.option("--reason", required=True, help="What you checked; it is kept in the audit log.")
@yes_option
async def release_lane(
    session: Session, install: str, lane: str, reason: str, *, yes: bool
) -> None:
    """Let work on a lane go on, after a person has checked its resources."""
    body = build(ReleaseLane, reason=reason)
    install_id = await find_install(session, install)
    question = f"Release the lane `{lane}` of `{install}`? Whatever ran there must be over."
    session.confirm(question, yes=yes)
    _show(session, await session.client.release_lane(install_id, lane, body))


def show_labels(labels: dict[str, str]) -> str:
    """Write labels as `key=value` words."""
    return " ".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _show(session: Session, install: InstallReply) -> None:
    pairs = [
        ("name", install.name),
        ("id", install.id),
        ("labels", show_labels(install.labels)),
        ("created", show_time(install.created_at)),
    ]
    text = session.out.details(pairs)
    if install.lanes:
        text += "\n\n" + _show_lanes(session, install.lanes)
    session.out.show(install, text)


def _show_lanes(session: Session, lanes: list[LaneReply]) -> str:
    rows = [
        [lane.name, lane.state, lane.execution_id or "", show_time(lane.changed_at), lane.reason]
        for lane in lanes
    ]
    return session.out.table(["LANE", "STATE", "EXECUTION", "SINCE", "REASON"], rows)
