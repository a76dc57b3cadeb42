"""Authentication of users and runners, and the rights of users."""

from dataclasses import replace
from datetime import timedelta

from exclave.base.digests import hash_token
from exclave.base.errors import Forbidden, NotFound, Unauthenticated
from exclave.control.deps import Deps
from exclave.domain.identity import (
    Right,
    RunnerIdentity,
    ScopeKind,
    User,
    allows,
    list_granted,
)
from exclave.storage import accounts, credentials, installs, runner_access
from exclave.storage.engine.database import Tx

API_TOKEN = "xcl"  # noqa: S105 - a prefix
ENROLMENT_TOKEN = "xce"  # noqa: S105 - a prefix
ACCESS_TOKEN = "xcr"  # noqa: S105 - a prefix


_USE_STEP = timedelta(minutes=5)
"""The last use of a token is noted this exactly; a write per request would buy nothing."""


async def authenticate_user(deps: Deps, token: str) -> User:
    """Return the user of an API token."""
    if not token.startswith(f"{API_TOKEN}_"):
        raise Unauthenticated("this is not an API token")

    def find(tx: Tx) -> tuple[User | None, bool]:
        entry = accounts.find_user(tx, hash_token(token))
        if entry is None:
            return None, False
        user, used_at = entry
        return user, used_at is None or tx.now - used_at > _USE_STEP

    user, stale = await deps.db.read(find, alone=True)
    if user is None:
        raise Unauthenticated("the token is unknown, expired or revoked")
    if stale:
        deps.token_uses.note(user.org, user.token)
    return user


def hold_token(tx: Tx, user: User) -> None:
    """Lock the caller's token until the commit, so that it is not revoked meanwhile."""
    if not credentials.hold_token(tx, user.org, user.token):
        raise Unauthenticated("the token is unknown, expired or revoked")


async def authenticate_runner(deps: Deps, token: str) -> RunnerIdentity:
    """Return the runner of an access token; its first use confirms the token's generation."""
    who = await recognise_runner(deps, token)
    if who.unconfirmed is not None:
        await deps.db.write(lambda tx: confirm_generation(tx, who), key=who.queue)
    return replace(who, unconfirmed=None)


async def recognise_runner(deps: Deps, token: str) -> RunnerIdentity:
    """Return the runner of an access token, for a caller that confirms its generation."""
    if not token.startswith(f"{ACCESS_TOKEN}_"):
        raise Unauthenticated("this is not a runner's access token")
    identity = await deps.db.read(
        lambda tx: runner_access.find_identity(tx, hash_token(token)), alone=True
    )
    if identity is None:
        raise Unauthenticated("the access token is unknown, expired or revoked")
    return identity


def confirm_generation(tx: Tx, who: RunnerIdentity) -> None:
    """Record that a runner has used its newest token, if it is the first time."""
    if who.unconfirmed is not None:
        runner_access.confirm_generation(tx, who.org, who.runner, who.unconfirmed)


class InstanceAdminNeeded(Forbidden):
    """The action concerns the whole instance, not one org."""

    code = "instance_admin_needed"
    hint = (
        "Ask the operator of this Exclave instance: they create orgs, or give a token the right"
        " with `exclave server instance-admin TOKEN_ID`."
    )


def require_instance_admin(user: User) -> None:
    """Raise unless the user is an instance admin, which no role of an org includes."""
    if not user.instance_admin:
        raise InstanceAdminNeeded("only an instance admin does this")


def require(
    user: User,
    right: Right,
    install: str | None = None,
    *,
    app: str | None = None,
    noun: str = "thing",
) -> None:
    """Raise unless a grant allows it: `NotFound` if the user may not see it, else `Forbidden`."""
    if allows(user, right, install, app):
        return
    if not allows(user, Right.READ, install, app):
        raise NotFound(f"there is no such {noun}")
    raise Forbidden(f"this needs the right to {right}", right=right)


def require_on(tx: Tx, user: User, right: Right, queue: str | None, *, noun: str = "thing") -> None:
    """Raise like `require` for a right on an install; a grant on its app counts too."""
    app = None
    if queue is not None and not allows(user, right, queue) and list_granted(user, ScopeKind.APP):
        app = installs.find_app_of(tx, user.org, queue)
    require(user, right, queue, app=app, noun=noun)


async def require_there(deps: Deps, user: User, right: Right, queue: str | None) -> None:
    """Raise like `require_on`, before any transaction begins; most callers need no query."""
    if not allows(user, right, queue):
        await deps.db.read(lambda tx: require_on(tx, user, right, queue))
