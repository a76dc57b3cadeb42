"""`exclave orgs`: the org of the token."""

import click

from exclave.cli.deps import Session, verb, yes_option
from exclave.cli.inputs import build
from exclave.cli.output import show_time
from exclave.cli.registry import show_size
from exclave.cli.root import SuggestingGroup
from exclave.wire.identity import FourEyesReply, NewOrg, SetFourEyes

group = SuggestingGroup("orgs", help="Show and create orgs (tenants).")


@verb(group, "show")
async def show(session: Session) -> None:
    """Show the org of the token in use."""
    org = await session.client.orgs.get()
    pairs = [
        ("name", org.name),
        ("id", org.id),
        ("build queue", org.build_queue_id),
        ("created", show_time(org.created_at)),
    ]
    session.out.show(org, session.out.details(pairs))


@verb(group, "usage")
async def usage(session: Session) -> None:
    """Show the storage used by the org, and its limits."""
    reply = await session.client.orgs.get_usage()
    rows = [
        (
            line.kind,
            "" if line.bytes is None else show_size(line.bytes),
            "" if line.bytes_limit is None else show_size(line.bytes_limit),
            str(line.items),
            "" if line.items_limit is None else str(line.items_limit),
        )
        for line in reply.kinds
    ]
    headers = ("kind", "bytes", "limit", "items", "limit")
    session.out.show(reply, session.out.table(headers, rows))


@verb(group, "create")
@click.argument("name")
async def create(session: Session, name: str) -> None:
    """Create an org and print its admin's first token once. Requires an instance admin."""
    org = await session.client.orgs.create(build(NewOrg, name=name))
    session.out.show(org, org.token)
    if not session.out.json_mode:
        session.out.say(f"Created org `{org.name}` ({org.id}).")
        session.out.say("The token of its admin is printed above. Store it: it is not shown again.")


four_eyes = SuggestingGroup("four-eyes", help="Require two people for every change.")
group.add_command(four_eyes)


@verb(four_eyes, "status")
async def show_four_eyes(session: Session) -> None:
    """Show whether every change needs two people."""
    _show_four_eyes(session, await session.client.orgs.get_four_eyes())


@verb(four_eyes, "on")
async def switch_on(session: Session) -> None:
    """Require two people for every change; withdraws a request to turn this off."""
    _show_four_eyes(session, await session.client.orgs.set_four_eyes(SetFourEyes(on=True)))


@verb(four_eyes, "off")
@yes_option
async def switch_off(session: Session, *, yes: bool) -> None:
    """Allow changes by one person again; takes effect when a second admin runs this too."""
    session.confirm("Allow changes by a single person?", yes=yes)
    _show_four_eyes(session, await session.client.orgs.set_four_eyes(SetFourEyes(on=False)))


def _show_four_eyes(session: Session, reply: FourEyesReply) -> None:
    pairs = [("four eyes", "on" if reply.on else "off"), ("admins", ", ".join(reply.admins))]
    if reply.off_requested_by:
        until = show_time(reply.off_request_expires_at)
        pairs.append(("off asked by", f"{reply.off_requested_by}, until {until}"))
    session.out.show(reply, session.out.details(pairs))
    if reply.off_requested_by and not session.out.json_mode:
        session.out.say("Another admin confirms it with: exclave orgs four-eyes off")
