"""`exclave installs account`, `confirm-account`, `reset-account`: whose machine may enrol."""

import click

from exclave.cli.deps import Session, verb, yes_option
from exclave.cli.inputs import build
from exclave.cli.lookup import find_install
from exclave.cli.output import show_time
from exclave.cli.root import SuggestingGroup
from exclave.wire.cloud_accounts import CloudAccountReply, ConfirmAccount, ResetAccount

group = SuggestingGroup("accounts")
"""Verbs that are found under `installs`."""

_PINNED = {"creation": "when the install was created", "code": "by the one-time code"}


@verb(group, "account")
@click.argument("install", metavar="NAME|ID")
async def show_account(session: Session, install: str) -> None:
    """Show the account in a cloud that an install is pinned to, and the machine that enrolled."""
    _show(session, await session.client.accounts.get(await find_install(session, install)))


@verb(group, "confirm-account")
@click.argument("install", metavar="NAME|ID")
@click.argument("account")
async def confirm_account(session: Session, install: str, account: str) -> None:
    """Confirm the ACCOUNT that a one-time code pinned, so that its runner may enrol."""
    body = build(ConfirmAccount, account=account)
    install_id = await find_install(session, install)
    _show(session, await session.client.accounts.confirm(install_id, body))


@verb(group, "reset-account")
@click.argument("install", metavar="NAME|ID")
@click.option("--reason", required=True, help="Reason; recorded in the audit log.")
@click.option("--account", default="", help="Pin this account; default: the next code decides.")
@click.option("--tenant", default="", help="Azure: the tenant of the subscription.")
@click.option("--region", default="", help="Region; default: it stays.")
@yes_option
async def reset_account(
    session: Session,
    install: str,
    reason: str,
    account: str,
    tenant: str,
    region: str,
    *,
    yes: bool,
) -> None:
    """Forget the account that an install is pinned to, or pin another; its runner is revoked."""
    body = build(ResetAccount, reason=reason, account=account, tenant=tenant, region=region)
    install_id = await find_install(session, install)
    session.confirm(f"Reset the account of {install}? Its runner stops working.", yes=yes)
    _show(session, await session.client.accounts.reset(install_id, body))


def list_pairs(account: CloudAccountReply) -> list[tuple[str, str]]:
    """Return the facts of a pin for a person."""
    pinned = _PINNED.get(account.pinned_by or "", "")
    enrolled = f"{account.machine} at {show_time(account.enrolled_at)}" if account.machine else ""
    alarm = f"{show_time(account.alarm_at)}: {account.alarm}" if account.alarm else ""
    confirmed = f"by {account.confirmed_by}" if account.confirmed_by else ""
    return [
        ("pinned to", account.account or "no account yet"),
        ("pinned", f"{pinned}, {show_time(account.pinned_at)}" if pinned else ""),
        ("confirmed", "not yet: no runner enrols" if account.needs_confirmation else confirmed),
        ("identity", account.principal),
        ("machine", enrolled),
        ("alarm", alarm),
    ]


def _show(session: Session, account: CloudAccountReply) -> None:
    place = [("cloud", account.cloud), ("region", account.region), ("tenant", account.tenant)]
    session.out.show(account, session.out.details([*place, *list_pairs(account)]))
