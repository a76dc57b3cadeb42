"""`exclave orgs`: the tenant that a token belongs to."""

import click

from exclave.cli.deps import Session, verb
from exclave.cli.inputs import build
from exclave.cli.output import show_time
from exclave.cli.root import SuggestingGroup
from exclave.wire.identity import NewOrg

group = SuggestingGroup("orgs", help="The tenant that you work in.")


@verb(group, "show")
async def show(session: Session) -> None:
    """Show the org of the token in use."""
    org = await session.client.get_org()
    pairs = [
        ("name", org.name),
        ("id", org.id),
        ("build queue", org.build_queue_id),
        ("created", show_time(org.created_at)),
    ]
    session.out.show(org, session.out.details(pairs))


@verb(group, "create")
@click.argument("name")
async def create(session: Session, name: str) -> None:
    """Create an org and print the first token of its admin, once."""
    org = await session.client.create_org(build(NewOrg, name=name))
    session.out.show(org, org.token)
    if not session.out.json_mode:
        session.out.say(f"Created org `{org.name}` ({org.id}).")
        session.out.say("Above is its admin token. Keep it: it is not shown again.")
