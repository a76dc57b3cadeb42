"""The caller, the caller's org, and new orgs."""

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.idempotency import idempotent
from exclave.api.routes import UserRoute, make_router
from exclave.control import four_eyes
from exclave.control.limits import usage
from exclave.control.orgs import accounts
from exclave.wire.identity import (
    FourEyesReply,
    NewOrg,
    OrgCreated,
    OrgReply,
    SetFourEyes,
    WhoAmI,
)
from exclave.wire.usage import UsageReply

router = make_router("/v1", "orgs", UserRoute)


@router.get("/whoami")
async def show_caller(user: UserOf, deps: DepsOf) -> WhoAmI:
    """Show the account and the org of the token."""
    return await accounts.who_am_i(deps, user)


@router.get("/org")
async def show_org(user: UserOf, deps: DepsOf) -> OrgReply:
    """Show the caller's org."""
    return await accounts.show_org(deps, user)


@router.get("/org/usage")
async def show_usage(user: UserOf, deps: DepsOf) -> UsageReply:
    """Show how much the caller's org stores, and its quotas."""
    return await usage.show_usage(deps, user)


@router.get("/org/four-eyes")
async def show_four_eyes(user: UserOf, deps: DepsOf) -> FourEyesReply:
    """Show whether every change needs two people."""
    return await four_eyes.show_four_eyes(deps, user)


@router.put("/org/four-eyes")
async def set_four_eyes(body: SetFourEyes, user: UserOf, deps: DepsOf) -> FourEyesReply:
    """Require two people for every change. Switching it off takes two admins."""
    return await four_eyes.set_four_eyes(deps, user, on=body.on)


@router.post("/orgs", status_code=201)
@idempotent(secret=True)
async def create_org(body: NewOrg, user: UserOf, deps: DepsOf) -> OrgCreated:
    """Create another org, as an instance admin. The reply holds its first token, shown once."""
    return await accounts.add_org(deps, user, body.name)
