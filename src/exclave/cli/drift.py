"""`exclave drift`: what scans for drift found in an install, and what people said to it."""

from collections.abc import Sequence

import click

from exclave.cli.deps import Session, verb, yes_option
from exclave.cli.inputs import build
from exclave.cli.lookup import find_install, gather, page_options
from exclave.cli.output import show_time
from exclave.cli.root import SuggestingGroup
from exclave.wire.drift_findings import (
    AcceptFinding,
    DriftFindingReply,
    FindingState,
    ReopenFinding,
)
from exclave.wire.model import Page

group = SuggestingGroup("drift", help="Show, accept and reopen what scans for drift found.")

_install = click.argument("install", metavar="INSTALL")
_finding = click.argument("finding", metavar="FINDING")
_HEADERS = ["ID", "COMPONENT", "STATE", "RESOURCE", "LIVE → DEPLOYED", "SINCE", "REASON"]


@verb(group, "list")
@_install
@click.option("--part", help="Only show findings of `sandbox` or of this component.")
@click.option(
    "--state",
    type=click.Choice([str(state) for state in FindingState]),
    help="Only show findings in this state; `gone` ones are shown only this way.",
)
@page_options
async def list_findings(
    session: Session,
    install: str,
    part: str | None,
    state: str | None,
    limit: int,
    cursor: str | None,
) -> None:
    """List what scans found, newest first. `exclave installs drift` scans."""
    install_id = await find_install(session, install)
    wanted = None if state is None else FindingState(state)

    async def fetch(at: str | None, most: int) -> Page[DriftFindingReply]:
        return await session.client.drift.list(
            install_id, at, most, of_part=_name_part(part), state=wanted
        )

    page = await gather(session, fetch, limit, cursor)
    session.out.show(page, session.out.table(_HEADERS, [_format(item) for item in page.items]))


@verb(group, "accept")
@_install
@_finding
@click.option("--reason", required=True, help="Why it may stay; recorded in the audit log.")
@yes_option
async def accept(session: Session, install: str, finding: str, reason: str, *, yes: bool) -> None:
    """Accept a finding: it is no drift until its content changes."""
    install_id = await find_install(session, install)
    shown = await session.client.drift.get(install_id, finding)
    body = build(AcceptFinding, content=shown.content, reason=reason)
    session.confirm(f"Accept this? {_name_subject(shown)}: {_describe(shown)}", yes=yes)
    _show(session, await session.client.drift.accept(install_id, finding, body))


@verb(group, "reopen")
@_install
@_finding
@click.option("--reason", required=True, help="Why; recorded in the audit log.")
async def reopen(session: Session, install: str, finding: str, reason: str) -> None:
    """Withdraw the acceptance of a finding: it is drift again."""
    body = build(ReopenFinding, reason=reason)
    install_id = await find_install(session, install)
    _show(session, await session.client.drift.reopen(install_id, finding, body))


def _show(session: Session, finding: DriftFindingReply) -> None:
    session.out.show(finding, session.out.table(_HEADERS, [_format(finding)]))


def _format(finding: DriftFindingReply) -> Sequence[str]:
    reason = f"{finding.accepted_by}: {finding.reason}" if finding.accepted_by else ""
    return [
        finding.id,
        finding.part.removeprefix("component:"),
        finding.state,
        _name_subject(finding),
        _describe(finding),
        show_time(finding.first_at),
        reason,
    ]


def _name_subject(finding: DriftFindingReply) -> str:
    return f"{finding.address} {finding.path}".rstrip()


def _describe(finding: DriftFindingReply) -> str:
    return finding.detail or f"would {finding.change}"


def _name_part(part: str | None) -> str | None:
    is_full = part is None or part == "sandbox" or ":" in part
    return part if is_full else f"component:{part}"
