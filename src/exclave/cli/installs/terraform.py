"""`exclave installs tf-state` and `installs orphans`: states of parts, and lost resources."""

import click

from exclave.base.errors import InvalidInput
from exclave.cli.deps import Session, verb, yes_option
from exclave.cli.inputs import build
from exclave.cli.lookup import find_install
from exclave.cli.output import show_time
from exclave.cli.root import SuggestingGroup
from exclave.cli.terminal import clean_line
from exclave.wire.terraform import (
    OrphansReply,
    RestoreState,
    TfLockReply,
    TfWorkspaceDetail,
    TfWorkspaceReply,
    UnlockWorkspace,
)

group = SuggestingGroup("installs")
states = SuggestingGroup(
    "tf-state", help="Manage the states of parts: versions, resources, objects, locks."
)
group.add_command(states)

_SHORT = 12


@verb(states, "list")
@click.argument("install", metavar="NAME|ID")
async def list_states(session: Session, install: str) -> None:
    """List the states of the sandbox and the components, Terraform's and those of clusters."""
    install_id = await find_install(session, install)
    page = await session.client.terraform.list_states(install_id)
    if not page.items and not session.out.json_mode:
        session.out.say("Nothing found.")
    rows = [_format_row(item) for item in page.items]
    headers = ["WORKSPACE", "SERIAL", "VERSIONS", "RESOURCES", "WRITTEN", "LOCK"]
    session.out.show(page, session.out.table(headers, rows))


@verb(states, "show")
@click.argument("install", metavar="NAME|ID")
@click.argument("workspace", default="sandbox")
@click.option(
    "--version", type=click.IntRange(min=1), help="Version to show.  [default: the newest]"
)
async def show_state(session: Session, install: str, workspace: str, version: int | None) -> None:
    """Show the header and the resources of a state; its values stay encrypted."""
    install_id = await find_install(session, install)
    _show(session, await session.client.terraform.get_state(install_id, workspace, version))


@verb(states, "versions")
@click.argument("install", metavar="NAME|ID")
@click.argument("workspace", default="sandbox")
async def list_versions(session: Session, install: str, workspace: str) -> None:
    """List the stored versions of a state, newest first."""
    install_id = await find_install(session, install)
    state = await session.client.terraform.get_state(install_id, workspace)
    rows = [
        [
            str(version.version),
            str(version.serial),
            str(version.size),
            show_time(version.at),
            version.execution_id,
            "" if version.restored_from is None else f"version {version.restored_from} again",
        ]
        for version in state.versions
    ]
    headers = ["VERSION", "SERIAL", "BYTES", "STORED", "EXECUTION", ""]
    session.out.show(state, session.out.table(headers, rows))


@verb(states, "unlock")
@click.argument("install", metavar="NAME|ID")
@click.argument("workspace", default="sandbox")
@click.option("--reason", required=True, help="Reason; recorded in the audit log.")
@yes_option
async def unlock_state(
    session: Session, install: str, workspace: str, reason: str, *, yes: bool
) -> None:
    """Remove the lock of an execution that has ended; the lock of a running job stays."""
    body = build(UnlockWorkspace, reason=reason)
    install_id = await find_install(session, install)
    session.confirm(f"Unlock the state of `{workspace}` of `{install}`?", yes=yes)
    _show(session, await session.client.terraform.unlock_state(install_id, workspace, body))


@verb(states, "rescued")
@click.argument("install", metavar="NAME|ID")
@click.argument("workspace", default="sandbox")
async def list_rescued(session: Session, install: str, workspace: str) -> None:
    """List states that runners could not store and uploaded separately, newest first."""
    install_id = await find_install(session, install)
    page = await session.client.terraform.list_rescued(install_id, workspace)
    if not page.items and not session.out.json_mode:
        session.out.say("Nothing found.")
    rows = [
        [
            item.execution_id,
            item.job_id,
            str(item.serial),
            str(item.resources),
            show_time(item.at),
            item.misfit or "can be restored",
        ]
        for item in page.items
    ]
    headers = ["EXECUTION", "JOB", "SERIAL", "RESOURCES", "HANDED IN", ""]
    session.out.show(page, session.out.table(headers, rows))


@verb(states, "restore")
@click.argument("install", metavar="NAME|ID")
@click.argument("workspace")
@click.argument("execution", required=False)
@click.option(
    "--version", type=click.IntRange(min=1), help="Version to restore, instead of EXECUTION."
)
@click.option("--reason", required=True, help="Reason; recorded in the audit log.")
@yes_option
async def restore_state(
    session: Session,
    install: str,
    workspace: str,
    execution: str | None,
    version: int | None,
    reason: str,
    *,
    yes: bool,
) -> None:
    """Store the state that EXECUTION rescued, or an older version, as the newest version.

    Refused while a job holds the lane. Plans that were made before become stale.
    """
    if (execution is None) == (version is None):
        raise InvalidInput(
            "pass either the execution that rescued a state or --version",
            hint="`tf-state rescued` and `tf-state versions` list what can be restored.",
        )
    body = build(RestoreState, execution_id=execution, version=version, reason=reason)
    install_id = await find_install(session, install)
    if version is not None:
        await _warn_of_forgotten(session, install_id, workspace, version)
    what = f"version {version}" if execution is None else f"what {execution} rescued"
    session.confirm(f"Make {what} the state of `{workspace}` of `{install}`?", yes=yes)
    _show(session, await session.client.terraform.restore_state(install_id, workspace, body))


@verb(group, "orphans")
@click.argument("install", metavar="NAME|ID")
@click.option("--all", "every", is_flag=True, help="Include lanes that were released since.")
async def list_orphans(session: Session, install: str, *, every: bool) -> None:
    """List resources that interrupted applies created outside any state, with import blocks."""
    install_id = await find_install(session, install)
    orphans = await session.client.terraform.list_orphans(install_id, every=every)
    session.out.show(orphans, format_orphans(orphans))
    if session.out.json_mode:
        return
    if orphans.unread:
        names = ", ".join(orphans.unread)
        session.out.say(f"warning: the journals of {names} could not be read completely")
    if not orphans.orphans:
        session.out.say("According to the journals, no resource is missing from the states.")


def format_orphans(reply: OrphansReply) -> str:
    """Return orphans as text that can be pasted into a module."""
    parts = []
    for orphan in reply.orphans:
        head = clean_line(f"# {orphan.workspace}: {orphan.address}, by job {orphan.job_id}")
        if orphan.certainty == "unknown":
            parts.append(f"{head}\n# started, outcome unknown: check whether it exists")
        elif orphan.certainty == "planned":
            parts.append(f"{head}\n# planned, never seen to start: most likely it does not exist")
        elif orphan.import_block:
            parts.append(f"{head}\n{orphan.import_block.rstrip()}")
        else:
            parts.append(f"{head}\n# created, but its id is not known")
    return "\n\n".join(parts)


async def _warn_of_forgotten(
    session: Session, install_id: str, workspace: str, version: int
) -> None:
    """Print the resources that the version lacks: nothing manages them any more."""
    older = (await session.client.terraform.get_state(install_id, workspace, version)).newest
    newest = (await session.client.terraform.get_state(install_id, workspace)).newest
    kept = {(resource.address, resource.id) for resource in (older.resources if older else ())}
    for resource in newest.resources if newest else ():
        if (resource.address, resource.id) not in kept:
            named = f"`{resource.address}`" + (f" ({resource.id})" if resource.id else "")
            warning = f"Version {version} does not contain {named}: it will no longer be managed."
            session.out.say(clean_line(warning))


def _format_row(workspace: TfWorkspaceReply) -> list[str]:
    newest = workspace.newest
    if newest is None:
        return [workspace.workspace, "", "", "", "", _format_lock(workspace.lock)]
    return [
        workspace.workspace,
        str(newest.serial),
        str(newest.version),
        str(len(newest.resources)),
        show_time(newest.at),
        _format_lock(workspace.lock),
    ]


def _format_lock(lock: TfLockReply | None) -> str:
    if lock is None:
        return ""
    return f"left by {lock.execution_id}" if lock.stale else f"held by {lock.execution_id}"


def _show(session: Session, detail: TfWorkspaceDetail) -> None:
    newest = detail.newest
    pairs = [("workspace", detail.workspace), ("lock", _format_lock(detail.lock))]
    if newest is not None:
        pairs += [
            ("serial", str(newest.serial)),
            ("lineage", newest.lineage),
            ("version", f"{newest.version} of {len(detail.versions)}"),
            ("sha256", newest.sha256),
            ("written", f"{show_time(newest.at)} by {newest.execution_id}"),
        ]
    if newest is not None and newest.restored_from is not None:
        pairs.append(("restored", f"from version {newest.restored_from}"))
    text = session.out.details(pairs)
    if newest is not None and newest.resources:
        rows = [[resource.address, resource.type, resource.id] for resource in newest.resources]
        text += "\n\n" + session.out.table(["ADDRESS", "TYPE", "ID"], rows)
    session.out.show(detail, text)
