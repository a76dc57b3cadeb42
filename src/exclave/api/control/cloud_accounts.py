"""The account in a cloud that an install is pinned to."""

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.idempotency import idempotent
from exclave.api.ids import InstallOf
from exclave.api.routes import UserRoute, make_router
from exclave.control.installs import cloud_accounts
from exclave.wire.cloud_accounts import CloudAccountReply, ConfirmAccount, ResetAccount

router = make_router("/v1/installs", "installs", UserRoute)


@router.get("/{install}/account")
async def show_account(install: InstallOf, user: UserOf, deps: DepsOf) -> CloudAccountReply:
    """Show whose machine may be the runner of an install, and which one is."""
    return await cloud_accounts.show_account(deps, user, install)


@router.post("/{install}/account/confirm")
@idempotent()
async def confirm_account(
    install: InstallOf, body: ConfirmAccount, user: UserOf, deps: DepsOf
) -> CloudAccountReply:
    """Confirm the account that a one-time code pinned, so that its runner may enrol."""
    return await cloud_accounts.confirm_account(deps, user, install, body.account)


@router.post("/{install}/account/reset")
@idempotent()
async def reset_account(
    install: InstallOf, body: ResetAccount, user: UserOf, deps: DepsOf
) -> CloudAccountReply:
    """Forget the pinned account, or put another in its place; the runner's identity ends."""
    return await cloud_accounts.reset_account(deps, user, install, body)
