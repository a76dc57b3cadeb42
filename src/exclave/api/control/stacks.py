"""Stacks of installs: create one for the customer, show what it reported."""

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.idempotency import idempotent
from exclave.api.ids import InstallOf
from exclave.api.routes import UserRoute, make_router
from exclave.control.stacks import stacks
from exclave.wire.stacks import StackCreated, StackReply

router = make_router("/v1/installs/{install}/stack", "installs", UserRoute)


@router.get("")
async def show_stack(install: InstallOf, user: UserOf, deps: DepsOf) -> StackReply:
    """Show what the customer's Stack reported last."""
    return await stacks.show_stack(deps, user, install)


@router.post("", status_code=201)
@idempotent(secret=True)
async def create_stack(install: InstallOf, user: UserOf, deps: DepsOf) -> StackCreated:
    """Create a Stack with a one-time token, shown once; older unused ones are void."""
    return await stacks.create_stack(deps, user, install)
