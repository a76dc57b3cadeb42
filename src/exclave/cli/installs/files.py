"""`exclave installs sync`: create and update installs from files."""

from collections.abc import Iterator
from pathlib import Path

import click

from exclave.appconfig.install_files import InstallFiles, read_install_files
from exclave.appconfig.model.kinds.installs import Install
from exclave.base.errors import InvalidInput
from exclave.cli.deps import Session, verb, yes_option
from exclave.cli.errors import FAILED
from exclave.cli.inputs import check
from exclave.cli.installs.options import wait_option
from exclave.cli.root import SuggestingGroup
from exclave.cli.workflows.watch import watch_workflow
from exclave.wire.installs import InstallConfig, InstallsSynced, InstallSynced, SyncInstalls

group = SuggestingGroup("installs")


@verb(group, "sync")
@click.argument("path", metavar="DIR|FILE", type=click.Path(path_type=Path))
@click.option(
    "--app", metavar="NAME|ID", help="App of the installs.  [default: name of the directory]"
)
@click.option("--dry-run", is_flag=True, help="Show what would change without changing anything.")
@yes_option
@wait_option
async def sync(
    session: Session, path: Path, app: str | None, *, dry_run: bool, yes: bool, wait: bool
) -> int | None:
    """Create and update installs from their files; if one fails, none is changed.

    Values that a file does not set are kept; installs without a file are not changed.
    """
    files = read_install_files(session.deps.cwd / path)
    _print_findings(session, files)
    body = SyncInstalls(
        app=check(
            SyncInstalls, {"app": app or _guess_app(session, path), "installs": [_ANY]}, ""
        ).app,
        installs=[_read(file, files) for file in files.installs],
        dry_run=True,
    )
    planned = await session.client.installs.sync(body)
    refused = [install for install in planned.installs if install.problem]
    changing = [install for install in planned.installs if install.action in {"create", "update"}]
    if refused or dry_run or not changing:
        session.out.show(planned, _write(planned))
        return FAILED if refused else None
    if not session.out.json_mode:
        session.out.say(_write(planned))
    session.confirm(f"Change {len(changing)} of {len(planned.installs)} installs?", yes=yes)
    done = await session.client.installs.sync(body.model_copy(update={"dry_run": False}))
    return await _end(session, done, wait=wait)


_ANY = {"name": "any"}


def _guess_app(session: Session, path: Path) -> str:
    folder = (session.deps.cwd / path).resolve()
    if folder.is_file():
        folder = folder.parent
    return folder.parent.name if folder.name == "installs" else folder.name


def _read(file: str, files: InstallFiles) -> InstallConfig:
    install = files.installs[file]
    fields = {
        "name": install.name,
        "approval_option": install.approval_option,
        "inputs": dict(install.inputs),
        "labels": dict(install.labels),
        "component_toggles": dict(install.component_toggles),
        "components": {
            name: {"tf_vars": component.tf_vars, "helm_values": component.helm_values}
            for name, component in install.components.items()
        },
        **_read_place(install),
    }
    return check(InstallConfig, fields, file)


def _read_place(install: Install) -> dict[str, str]:
    """Return where an install is, from the table of its cloud."""
    if (aws := install.aws_account) is not None:
        return {"region": aws.region, "account": aws.account_id}
    if (azure := install.azure_account) is not None:
        names = {"account": azure.subscription_id, "tenant": azure.tenant_id}
        return {"region": azure.location, **names}
    if (gcp := install.gcp_account) is not None:
        return {"region": gcp.region, "account": gcp.project_id}
    return {}


def _print_findings(session: Session, files: InstallFiles) -> None:
    for diagnostic in files.diagnostics:
        where = f"{diagnostic.file}:{diagnostic.line}:{diagnostic.column}"
        session.out.say(f"{diagnostic.severity}: {where}: {diagnostic.message}. {diagnostic.hint}")
    if not files.ok:
        raise InvalidInput("the files have errors; nothing was changed")


def _write(planned: InstallsSynced) -> str:
    return "\n".join(line for install in planned.installs for line in _list_lines(install))


def _list_lines(install: InstallSynced) -> Iterator[str]:
    yield f"{install.name}: {_WORDS[install.action]}"
    for change in install.changes:
        before = "" if change.before is None else f"{change.before} -> "
        yield f"  {change.what}: {before}{change.after or ''}"
    for warning in install.warnings:
        yield f"  warning: {warning}"
    if install.problem:
        yield f"  error: {install.problem}"
    if install.hint:
        yield f"  hint: {install.hint}"


async def _end(session: Session, done: InstallsSynced, *, wait: bool) -> int | None:
    if not done.applied:
        session.out.show(done, _write(done))
        session.out.say("The installs changed meanwhile; nothing was done. Try again.")
        return FAILED
    if not wait:
        session.out.show(done, "\n".join(map(_format_done, done.installs)))
        return None
    code = 0
    for install in done.installs:
        for begun in filter(None, (install.workflow_id, install.teardown_id)):
            code = code or await watch_workflow(session, begun)
    return code


def _format_done(install: InstallSynced) -> str:
    begun = filter(None, (install.workflow_id, install.teardown_id))
    watch = "".join(f"  exclave workflows watch {workflow}" for workflow in begun)
    return f"{install.name}: {_DONE[install.action]}{watch}"


_DONE = {"create": "created", "update": "changed", "none": "matches its file"}
_WORDS = {
    "create": "is created",
    "update": "is changed",
    "none": "matches its file",
    "refuse": "cannot be changed",
}
