"""Formatting of installs as text."""

from collections.abc import Sequence

from exclave.cli.deps import Session
from exclave.cli.installs.accounts import list_pairs
from exclave.cli.output import show_time
from exclave.cli.terminal import Styled, join
from exclave.wire.identity import RunnerReply
from exclave.wire.installs import InstallDetail, InstallReply, PartReply

_QUIET = "free"
_CLOSED = frozenset({"revoked", "locked"})
_MOST_CHARS = 100
_NEXT = {
    "provisioning": (
        "See what it waits for: exclave workflows get {name}\n"
        "What the customer's Stack reported and still needs: exclave installs stack-outputs {name}"
    ),
    "failed": (
        "A workflow failed. See where, and retry it: exclave workflows get {name}\n"
        "If the app has changed, upgrade and provision again: exclave installs upgrade {name},"
        " exclave installs provision {name}"
    ),
    "deprovisioned": "All its resources are removed. Delete it: exclave installs delete {name}",
}
"""What a person does next, by the state of the install."""


def write_rows(installs: Sequence[InstallReply]) -> list[list[str]]:
    """Return the rows of a table of installs."""
    return [
        [
            install.id,
            install.name,
            install.app,
            install.state,
            _show_config(install),
            show_labels(install.labels),
            show_time(install.created_at),
        ]
        for install in installs
    ]


def show_labels(labels: dict[str, str]) -> str:
    """Return labels as `key=value` words."""
    return " ".join(f"{key}={value}" for key, value in sorted(labels.items()))


def show_install(session: Session, install: InstallReply) -> None:
    """Print an install with all its details."""
    blocks = [session.out.details(_list_pairs(install))]
    if isinstance(install, InstallDetail):
        blocks += filter(None, _write_tables(session, install))
    session.out.show(install, join(blocks, "\n\n"))


def list_drifted(install: InstallDetail) -> list[str]:
    """Return the parts that have drifted."""
    return [part.part for part in install.parts if part.drift == "drifted"]


def write_repair(install: InstallDetail, drifted: list[str]) -> str:
    """Return the command that repairs drifted parts."""
    names = [part.removeprefix("component:") for part in drifted if part != "sandbox"]
    if len(names) < len(drifted):
        return f"exclave installs reprovision {install.name}"
    return f"exclave installs deploy {install.name} {' '.join(names)}"


def print_hints(session: Session, install: InstallDetail) -> None:
    """Print hints about what to do next."""
    if session.out.json_mode:
        return
    if install.state in _NEXT:
        session.out.say(f"\n{_NEXT[install.state].format(name=install.name)}")
    if install.state == "deprovisioned":
        return
    blocked = [lane.name for lane in install.lanes if lane.state == "needs_reconcile"]
    if blocked:
        command = f"exclave installs release-lane {install.name} {blocked[0]} --reason …"
        session.out.say(f"\nA lane is blocked: check its resources, then `{command}`.")
        session.out.say(f"What a lost apply left behind: exclave installs orphans {install.name}")
    degraded = [part.part for part in install.parts if part.health == "degraded"]
    if degraded:
        names = " ".join(part.removeprefix("component:") for part in degraded)
        command = f"exclave installs rollback {install.name} {names.split()[0]}"
        session.out.say(f"\nNot healthy: {names}. Correct it and deploy again, or `{command}`.")
    drifted = list_drifted(install)
    if drifted:
        session.out.say(f"\nDrift was found. Repair it: {write_repair(install, drifted)}")
    stale = [part for part in install.parts if part.config_version and not part.is_current]
    if stale:
        command = f"exclave installs deploy {install.name} --all"
        session.out.say(f"\nSome components differ from the config. Deploy them: {command}")
    if install.newest_version and install.newest_version != install.config_version:
        command = f"exclave installs upgrade {install.name} --dry-run"
        session.out.say(f"\nThe app has a newer version. See what would change: {command}")


def _list_pairs(install: InstallReply) -> list[tuple[str, str]]:
    where = f"{install.target}, on this server's machine" if install.here else install.target
    return [
        ("name", install.name),
        ("id", install.id),
        ("app", install.app),
        ("state", install.state),
        ("config", _show_config(install)),
        ("target", where),
        ("region", install.region),
        ("account", _show_account(install)),
        *_list_stack(install),
        *_list_pin(install),
        ("approval", _show_approval(install)),
        ("managed", f"by {install.managed_by}" if install.managed_by else ""),
        *_list_options(install),
        ("labels", show_labels(install.labels)),
        ("created", show_time(install.created_at)),
        ("workflow", install.workflow_id or ""),
    ]


def _show_account(install: InstallReply) -> str:
    """Return the account that an install in a cloud is bound to."""
    if not install.region:
        return ""
    tenant = f" (tenant {install.tenant})" if install.tenant else ""
    return f"{install.account}{tenant}" if install.account else "any: none was given"


def _list_stack(install: InstallReply) -> list[tuple[str, str]]:
    """List what is known about the Stack of an install in a cloud."""
    stack = install.stack if isinstance(install, InstallDetail) else None
    if stack is None:
        return []
    version = f"version {stack.running or stack.newest}"
    waits = f"; version {stack.newest} waits for the customer"
    is_behind = stack.running is not None and stack.newest > stack.running
    return [
        ("stack", f"{stack.state}, {version}{waits if is_behind else ''}"),
        ("mode", "plans only, by the customer" if stack.mode == "plan-only" else ""),
        ("roles off", ", ".join(stack.roles_off)),
        ("machine", stack.machine or stack.beacon),
        ("program", stack.program),
        ("machine goes", stack.leaving),
    ]


def _list_pin(install: InstallReply) -> list[tuple[str, str]]:
    """Return whose machine may be the runner of an install in a cloud."""
    pin = install.cloud_account if isinstance(install, InstallDetail) else None
    return [] if pin is None else list_pairs(pin)


def _show_approval(install: InstallReply) -> str:
    if not install.app_id:
        return ""
    if install.approval_option == "auto":
        return "by policies that pass, else by people"
    return "all plans automatically" if install.approve_all else "by people"


def _list_options(install: InstallReply) -> list[tuple[str, str]]:
    if not isinstance(install, InstallDetail):
        return []
    toggles = [f"{name} {'on' if on else 'off'}" for name, on in install.component_toggles.items()]
    return [("toggles", ", ".join(toggles)), ("overrides", ", ".join(install.component_overrides))]


def _show_config(install: InstallReply) -> str:
    if install.config_version is None:
        return ""
    if install.newest_version in {None, install.config_version}:
        return str(install.config_version)
    return f"{install.config_version} (newest {install.newest_version})"


def _write_tables(session: Session, install: InstallDetail) -> list[Styled]:
    table = session.out.table
    lanes = [
        [lane.name, lane.state, lane.execution_id or "", show_time(lane.changed_at), lane.reason]
        for lane in install.lanes
        if lane.state != _QUIET or not install.app_id
    ]
    runners = [
        [
            runner.id,
            runner.name,
            _show_presence(runner),
            runner.version,
            show_time(runner.seen_at),
            runner.cause,
        ]
        for runner in install.runners
    ]
    flows = [
        [
            workflow.id,
            workflow.name,
            workflow.state,
            show_time(workflow.created_at),
            workflow.created_by,
        ]
        for workflow in install.workflows
    ]
    return [
        table(
            ["PART", "STATE", "HEALTH", "DRIFT", "CONFIG", "SINCE", "MESSAGE"],
            [_write_part(part) for part in install.parts],
        ),
        table(["LANE", "STATE", "EXECUTION", "SINCE", "REASON"], lanes),
        table(["RUNNER", "NAME", "PRESENCE", "VERSION", "SEEN", "CAUSE"], runners),
        table(["WORKFLOW", "NAME", "STATE", "CREATED", "BY"], flows),
    ]


def _write_part(part: PartReply) -> list[str]:
    config = "" if part.config_version is None else str(part.config_version)
    if config and not part.is_current:
        config += " (outdated)"
    message = _shorten(part.message or part.health_reason)
    since = show_time(part.changed_at)
    return [part.part, part.state, part.health, part.drift, config, since, message]


def _show_presence(runner: RunnerReply) -> str:
    """Return the presence of a runner, or its state if it is revoked."""
    return runner.state if runner.state in _CLOSED else runner.presence


def _shorten(message: str) -> str:
    """Return text shortened for a table."""
    first = message.partition("\n")[0]
    return first if len(first) <= _MOST_CHARS else f"{first[:_MOST_CHARS]}…"
