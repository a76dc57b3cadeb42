"""`exclave installs`: list, create, show and delete installs; other modules add more verbs."""

import click

from exclave.cli.deps import Session, verb, yes_option
from exclave.cli.inputs import build, read_pairs
from exclave.cli.installs import (
    accounts,
    cloud_stacks,
    files,
    inputs,
    stacks,
    terraform,
    views,
    work,
)
from exclave.cli.installs.options import (
    inputs_file_option,
    install_argument,
    label_option,
    read_inputs,
    wait_option,
)
from exclave.cli.installs.text import print_hints, show_install, show_labels, write_rows
from exclave.cli.lookup import find_install, gather, page_options
from exclave.cli.root import SuggestingGroup
from exclave.cli.workflows.watch import watch_workflow
from exclave.wire.installs import InstallReply, NewInstall, SetLabels, SetManagedBy
from exclave.wire.jobs import ReleaseLane
from exclave.wire.model import Page
from exclave.wire.workflows import SetApproveAll

group = SuggestingGroup("installs", help="Manage installs: an app in one customer's account.")


@verb(group, "list")
@click.option("--app", metavar="NAME|ID", help="Only show installs of this app.")
@label_option("Only show installs with this label. Can be repeated.")
@click.option(
    "--state", help="Only show installs in this state: new, provisioning, active, failed, …"
)
@page_options
async def list_installs(
    session: Session,
    app: str | None,
    labels: tuple[str, ...],
    state: str | None,
    limit: int,
    cursor: str | None,
) -> None:
    """List installs."""
    wanted = read_pairs(labels, "--label")

    async def fetch(at: str | None, most: int) -> Page[InstallReply]:
        return await session.client.installs.list(at, most, app=app, state=state, labels=wanted)

    page = await gather(session, fetch, limit, cursor)
    headers = ["ID", "NAME", "APP", "STATE", "CONFIG", "LABELS", "CREATED"]
    session.out.show(page, session.out.table(headers, write_rows(page.items)))


@verb(group, "create")
@click.argument("app", required=False)
@click.option("--name", required=True, help="Name of the install, unique in the org.")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Value of an input. Can be repeated.",
)
@inputs_file_option
@label_option("Label of the install. Can be repeated.")
@click.option(
    "--approve-all", is_flag=True, help="Approve all plans of this install automatically."
)
@click.option("--region", default="", help="Of an app for a cloud: the customer's region.")
@click.option(
    "--account",
    default="",
    help="AWS account, Azure subscription or GCP project; without it any may apply the Stack.",
)
@click.option("--tenant", default="", help="Azure: the tenant of the subscription.")
@click.option(
    "--confirm-account",
    is_flag=True,
    help="Without --account: no runner enrols until you confirm the account that came first.",
)
@click.option("--here", is_flag=True, help="Run the install on the machine of `exclave dev`.")
@click.option("--no-provision", is_flag=True, help="Create the install without provisioning it.")
@wait_option
async def create(
    session: Session,
    app: str | None,
    name: str,
    inputs: tuple[str, ...],
    inputs_file: str | None,
    labels: tuple[str, ...],
    region: str,
    account: str,
    tenant: str,
    *,
    approve_all: bool,
    confirm_account: bool,
    here: bool,
    no_provision: bool,
    wait: bool,
) -> int | None:
    """Create an install of APP and start provisioning it.

    Without APP the install is an empty queue for your own workflows.
    """
    body = build(
        NewInstall,
        name=name,
        app=app,
        labels=read_pairs(labels, "--label"),
        inputs=read_inputs(inputs, inputs_file, "--input"),
        approve_all=approve_all,
        here=here,
        provision=not no_provision,
        region=region,
        account=account,
        tenant=tenant,
        confirm_account=confirm_account,
    )
    made = await session.client.installs.create(body)
    if wait and made.workflow_id:
        return await watch_workflow(session, made.workflow_id)
    show_install(session, made)
    if not session.out.json_mode:
        session.out.say(f"\nNext: {_format_next(made)}")
    return None


@verb(group, "get")
@install_argument
async def get(session: Session, install: str) -> None:
    """Show an install: its components, lanes, runners and recent workflows."""
    detail = await session.client.installs.get(await find_install(session, install))
    show_install(session, detail)
    print_hints(session, detail)


@verb(group, "labels")
@install_argument
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE|KEY-]...")
async def labels(session: Session, install: str, pairs: tuple[str, ...]) -> None:
    """Show labels, set them with KEY=VALUE, or remove them with KEY-."""
    detail = await session.client.installs.get(await find_install(session, install))
    gone = {pair[:-1] for pair in pairs if pair.endswith("-") and "=" not in pair}
    given = read_pairs([p for p in pairs if p[:-1] not in gone or "=" in p], "")
    kept = {key: value for key, value in detail.labels.items() if key not in gone}
    shown: InstallReply = detail
    if pairs:
        body = build(SetLabels, labels={**kept, **given})
        shown = await session.client.installs.set_labels(detail.id, body)
    session.out.show({"labels": shown.labels}, show_labels(shown.labels))


@verb(group, "approve-all")
@install_argument
@click.argument("switch", type=click.Choice(["on", "off"]))
@yes_option
async def approve_all(session: Session, install: str, switch: str, *, yes: bool) -> None:
    """Turn automatic approval of plans on or off, for all future workflows of an install."""
    install_id = await find_install(session, install)
    if switch == "on":
        session.confirm(f"Approve every future plan of `{install}` without review?", yes=yes)
    body = build(SetApproveAll, approve_all=switch == "on")
    show_install(session, await session.client.installs.set_approve_all(install_id, body))
    if not session.out.json_mode:
        session.out.say(
            "Running workflows do not change; for those use `exclave workflows approve-all`."
        )


@verb(group, "manage")
@install_argument
@click.argument("by", type=click.Choice(["by-config", "by-hand"]))
async def manage(session: Session, install: str, by: str) -> None:
    """Set whether an install is managed by its file (`installs sync`) or by people."""
    install_id = await find_install(session, install)
    body = build(SetManagedBy, managed_by="config" if by == "by-config" else "")
    show_install(session, await session.client.installs.set_managed_by(install_id, body))


@verb(group, "delete")
@install_argument
@click.option(
    "--forget",
    metavar="REASON",
    help="Delete although resources may be left; the reason is recorded.",
)
@yes_option
async def delete(session: Session, install: str, forget: str | None, *, yes: bool) -> None:
    """Delete a deprovisioned install; its history stays in the audit log."""
    install_id = await find_install(session, install)
    left = " Its resources in the customer's account are not removed." if forget else ""
    session.confirm(f"Delete the install `{install}`?{left}", yes=yes)
    await session.client.installs.delete(install_id, forget)
    session.out.show({"id": install_id, "deleted": True}, "")
    if not session.out.json_mode:
        session.out.say(f"Deleted `{install}`.")


@verb(group, "release-lane")
@install_argument
@click.argument("lane")
@click.option("--reason", required=True, help="What you checked; recorded in the audit log.")
@yes_option
async def release_lane(
    session: Session, install: str, lane: str, reason: str, *, yes: bool
) -> None:
    """Unblock a lane after you have checked its resources."""
    body = build(ReleaseLane, reason=reason)
    install_id = await find_install(session, install)
    question = f"Release the lane `{lane}` of `{install}`? Nothing must still be running there."
    session.confirm(question, yes=yes)
    show_install(session, await session.client.installs.release_lane(install_id, lane, body))


def _format_next(made: InstallReply) -> str:
    if made.app_id is None:
        return f"exclave runners enrol --install {made.name}"
    if made.here:
        return f"exclave workflows watch {made.workflow_id}"
    return f"exclave installs stack {made.name}  (prints what the customer has to run)"


for more in (files, inputs, views, work, stacks, cloud_stacks, terraform, accounts):
    for command in more.group.commands.values():
        group.add_command(command)
