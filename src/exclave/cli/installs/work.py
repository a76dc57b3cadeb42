"""`exclave installs deploy`, `teardown`, `deprovision` and so on: workflows of an install."""

import click

from exclave.base.errors import InvalidInput
from exclave.cli.deps import Session, verb, yes_option
from exclave.cli.errors import OK
from exclave.cli.inputs import build
from exclave.cli.installs.options import (
    approve_option,
    install_argument,
    show_begun,
    wait_option,
)
from exclave.cli.installs.text import list_drifted, write_repair
from exclave.cli.installs.upgrade import upgrade
from exclave.cli.lookup import find_install
from exclave.cli.root import SuggestingGroup
from exclave.wire.installs import StartWork, WorkflowKind

group = SuggestingGroup("installs")
group.add_command(upgrade)

_components = click.argument("components", nargs=-1, metavar="[COMPONENT]...")
_all = click.option("--all", "everything", is_flag=True, help="Select all components.")
_plan_only = click.option("--plan-only", is_flag=True, help="Make plans without applying them.")
_sandbox = click.option("--sandbox", is_flag=True, help="Only the sandbox, not the components.")


@verb(group, "provision")
@install_argument
@approve_option
@wait_option
async def provision(session: Session, install: str, *, approve_all: bool, wait: bool) -> int | None:
    """Provision a new install, or one that was deprovisioned."""
    return await _start(
        session, install, WorkflowKind.PROVISION, approve_all=approve_all, wait=wait
    )


@verb(group, "reprovision")
@install_argument
@_sandbox
@_plan_only
@approve_option
@wait_option
async def reprovision(
    session: Session, install: str, *, sandbox: bool, plan_only: bool, approve_all: bool, wait: bool
) -> int | None:
    """Apply the whole config again: the sandbox, then all components."""
    kind = WorkflowKind.REPROVISION_SANDBOX if sandbox else WorkflowKind.REPROVISION
    return await _start(
        session, install, kind, plan_only=plan_only, approve_all=approve_all, wait=wait
    )


@verb(group, "deprovision")
@install_argument
@_sandbox
@approve_option
@yes_option
@wait_option
async def deprovision(
    session: Session, install: str, *, sandbox: bool, approve_all: bool, yes: bool, wait: bool
) -> int | None:
    """Tear everything down: components in reverse order, then the sandbox."""
    what = "the sandbox" if sandbox else "everything"
    install_id = await find_install(session, install)
    session.confirm(f"Tear down {what} of `{install}`?", yes=yes)
    kind = WorkflowKind.DEPROVISION_SANDBOX if sandbox else WorkflowKind.DEPROVISION
    return await _start(session, install_id, kind, approve_all=approve_all, wait=wait)


@verb(group, "deploy")
@install_argument
@_components
@_all
@click.option("--dependents", is_flag=True, help="Include components that depend on them.")
@_plan_only
@click.option(
    "--take-over-release",
    is_flag=True,
    help="Take Helm releases over although another Helm seems to work on them.",
)
@approve_option
@wait_option
async def deploy(
    session: Session,
    install: str,
    components: tuple[str, ...],
    *,
    everything: bool,
    dependents: bool,
    plan_only: bool,
    take_over_release: bool,
    approve_all: bool,
    wait: bool,
) -> int | None:
    """Deploy components of the install's config version."""
    kind = _choose(components, WorkflowKind.DEPLOY, WorkflowKind.DEPLOY_ALL, everything=everything)
    return await _start(
        session,
        install,
        kind,
        components=list(components),
        dependents=dependents,
        plan_only=plan_only,
        take_over_release=take_over_release,
        approve_all=approve_all,
        wait=wait,
    )


@verb(group, "rollback")
@install_argument
@click.argument("component")
@click.option("--to", metavar="DIGEST", help="The plan to go back to; the one before by default.")
@approve_option
@wait_option
async def rollback(
    session: Session, install: str, component: str, *, to: str | None, approve_all: bool, wait: bool
) -> int | None:
    """Deploy an earlier plan of a chart or manifest again."""
    return await _start(
        session,
        install,
        WorkflowKind.DEPLOY,
        components=[component],
        rollback_to=to or "previous",
        approve_all=approve_all,
        wait=wait,
    )


@verb(group, "adopt")
@install_argument
@click.argument("component")
@approve_option
@yes_option
@wait_option
async def adopt(
    session: Session, install: str, component: str, *, approve_all: bool, yes: bool, wait: bool
) -> int | None:
    """Deploy a chart or manifest that moved to another cluster, or whose state was lost.

    What it left in an old cluster stays there, and is no longer known. What lives in this cluster
    and carries the component's marks belongs to it again: the plan lists what is removed.
    """
    install_id = await find_install(session, install)
    session.confirm(
        f"Deploy `{component}` of `{install}` with whatever of it lives in the cluster?", yes=yes
    )
    return await _start(
        session,
        install_id,
        WorkflowKind.DEPLOY,
        components=[component],
        adopt=True,
        approve_all=approve_all,
        wait=wait,
    )


@verb(group, "teardown")
@install_argument
@_components
@_all
@click.option("--dependents", is_flag=True, help="Include components that depend on them.")
@approve_option
@yes_option
@wait_option
async def teardown(
    session: Session,
    install: str,
    components: tuple[str, ...],
    *,
    everything: bool,
    dependents: bool,
    approve_all: bool,
    yes: bool,
    wait: bool,
) -> int | None:
    """Tear down components, dependent ones first."""
    kind = _choose(
        components, WorkflowKind.TEARDOWN, WorkflowKind.TEARDOWN_ALL, everything=everything
    )
    install_id = await find_install(session, install)
    what = ", ".join(f"`{name}`" for name in components) or "all components"
    session.confirm(f"Tear down {what} of `{install}`?", yes=yes)
    return await _start(
        session,
        install_id,
        kind,
        components=list(components),
        dependents=dependents,
        approve_all=approve_all,
        wait=wait,
    )


@verb(group, "sync-secrets")
@install_argument
@wait_option
async def sync_secrets(session: Session, install: str, *, wait: bool) -> int | None:
    """Check which secrets the customer has entered, and update where they are used."""
    return await _start(session, install, WorkflowKind.SYNC_SECRETS, approve_all=False, wait=wait)


@verb(group, "drift")
@install_argument
@click.argument("parts", nargs=-1, metavar="[PART]...")
@wait_option
async def drift(
    session: Session, install: str, parts: tuple[str, ...], *, wait: bool
) -> int | None:
    """Check the sandbox or components for drift; without PART everything that is deployed."""
    names = [part.removeprefix("component:") for part in parts if part != "sandbox"]
    code = await _start(
        session,
        install,
        WorkflowKind.DRIFT_SCAN,
        components=names,
        sandbox="sandbox" in parts,
        approve_all=False,
        wait=wait,
    )
    if wait and code == OK and not session.out.json_mode:
        await _print_drift(session, install)
    return code


async def _print_drift(session: Session, install: str) -> None:
    """Print what has drifted; drift does not fail the scan."""
    shown = await session.client.installs.get(await find_install(session, install))
    drifted = list_drifted(shown)
    if not drifted:
        session.out.say("Nothing has drifted.")
        return
    session.out.say(f"Drifted: {', '.join(drifted)}. How: exclave workflows plan {shown.name}")
    session.out.say(f"Repair it: {write_repair(shown, drifted)}")


def _choose(
    components: tuple[str, ...], some: WorkflowKind, every: WorkflowKind, *, everything: bool
) -> WorkflowKind:
    if bool(components) == everything:
        raise InvalidInput("pass component names or --all, not both")
    return every if everything else some


async def _start(
    session: Session,
    install: str,
    kind: WorkflowKind,
    *,
    approve_all: bool,
    wait: bool,
    **more: object,
) -> int | None:
    body = build(StartWork, kind=kind, approve_all=approve_all or None, **more)
    install_id = await find_install(session, install)
    begun = await session.client.installs.start_workflow(install_id, body)
    return await show_begun(session, begun, wait=wait)
