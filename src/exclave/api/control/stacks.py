"""Stacks of installs: create one for the customer, show what it reported."""

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.ids import InstallOf
from exclave.api.repeats import OnceOf
from exclave.api.routes import UserRoute, make_router
from exclave.control.stacks import stacks
from exclave.wire.stacks import StackCreated, StackReply

router = make_router("/v1/installs/{install}/stack", "installs", UserRoute)


@router.get("")
async def show_stack(install: InstallOf, user: UserOf, deps: DepsOf) -> StackReply:
    """Show what the customer's Stack reported last."""
    return await stacks.show_stack(deps, user, install)


@router.post("", status_code=201)
async def create_stack(install: InstallOf, user: UserOf, once: OnceOf) -> StackCreated:
    """Create a Stack with a one-time token, shown once; older unused ones are void."""
    return await once(
        StackCreated, None, lambda deps: stacks.create_stack(deps, user, install), secret=True
    )
