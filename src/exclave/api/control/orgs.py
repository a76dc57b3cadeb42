"""The caller, the caller's org, and new orgs."""

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.repeats import OnceOf
from exclave.api.routes import UserRoute, make_router
from exclave.control import accounts
from exclave.wire.identity import NewOrg, OrgCreated, OrgReply, WhoAmI

router = make_router("/v1", "orgs", UserRoute)


@router.get("/whoami")
async def show_caller(user: UserOf, deps: DepsOf) -> WhoAmI:
    """Tell who the token speaks for."""
    return await accounts.who_am_i(deps, user)


@router.get("/org")
async def show_org(user: UserOf, deps: DepsOf) -> OrgReply:
    """Show the caller's org."""
    return await accounts.show_org(deps, user)


@router.post("/orgs", status_code=201)
async def create_org(wish: NewOrg, user: UserOf, once: OnceOf) -> OrgCreated:
    """Create another tenant. The reply holds its first token, which is shown once."""
    return await once(
        OrgCreated, wish, lambda deps: accounts.add_org(deps, user, wish.name), secret=True
    )
