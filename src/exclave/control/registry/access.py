"""Access to the registry: runners by their identity, other clients by short-lived tokens."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from exclave.base.digests import hash_token
from exclave.base.errors import Unauthenticated
from exclave.control.access import ACCESS_TOKEN, authenticate_runner
from exclave.control.deps import Deps
from exclave.domain.identity import QueueKind, RunnerIdentity
from exclave.domain.registry import ALL, RegistryScope
from exclave.storage import registry_tokens
from exclave.wire.registry import RegistryPlace

REGISTRY_TOKEN = "xcg"  # noqa: S105 - a prefix
USERNAME = "exclave"
"""The name under which a registry token is the password."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """The scope of a registry client, and when its credential expires."""

    scope: RegistryScope
    expires_at: datetime


async def authenticate_client(deps: Deps, token: str) -> Admitted:
    """Return the scope of a credential; API tokens are not accepted."""
    if token.startswith(f"{ACCESS_TOKEN}_"):
        return await _admit_runner(deps, await authenticate_runner(deps, token))
    if not token.startswith(f"{REGISTRY_TOKEN}_"):
        raise Unauthenticated(
            "this is not a registry token", hint="Make one: `exclave registry token`."
        )
    row = await deps.db.read(lambda tx: registry_tokens.find_registry_token(tx, hash_token(token)))
    if row is None:
        raise Unauthenticated(
            "the registry token is unknown or expired", hint="Make one: `exclave registry token`."
        )
    scope = RegistryScope(
        row.org_id, row.created_by, (row.repository,), push=row.push, delete=row.push
    )
    return Admitted(scope, row.expires_at)


async def _admit_runner(deps: Deps, who: RunnerIdentity) -> Admitted:
    """Return the scope of a runner: a build runner pushes, an install's runner pulls its app's."""
    until = deps.clock.now() + timedelta(seconds=deps.timings.access_token_s)
    match who.kind:
        case QueueKind.BUILD:
            return Admitted(
                RegistryScope(who.org, who.runner, (ALL,), push=True, caches=True), until
            )
        case QueueKind.INSTALL:
            name = await deps.db.read(
                lambda tx: registry_tokens.find_app_name(tx, who.org, who.queue)
            )
            repositories = () if name is None else (f"apps/{name}",)
            return Admitted(RegistryScope(who.org, who.runner, repositories), until)


async def show_place(deps: Deps, who: RunnerIdentity) -> RegistryPlace:
    """Return the registry that a runner uses."""
    if deps.registry_url:
        return RegistryPlace(url=deps.registry_url)
    return RegistryPlace(folder=who.org)
