"""Fetches bills of materials from the registry, where they refer to the artifact."""

import asyncio
import tempfile
from pathlib import Path

from exclave.base.errors import NotFound
from exclave.base.secrets import Secret
from exclave.cli.deps import Session
from exclave.cli.inputs import build as build_model
from exclave.client.oci.client import Login, OciClient
from exclave.wire.builds import SBOM_TYPE, BuildReply
from exclave.wire.registry import NewRegistryToken

_MINUTES = 5


async def fetch_sbom(session: Session, build: BuildReply) -> bytes:
    """Return the bill of materials of a build; the credential for that is revoked afterwards."""
    if not build.digest:
        raise NotFound("the build has no artifact", hint="See why: exclave builds get.")
    body = build_model(NewRegistryToken, repository=build.repository, minutes=_MINUTES)
    made = await session.client.registry.create_token(body)
    login = Login(made.username, Secret(made.password))
    try:
        async with OciClient(made.url, None, session.deps.transport, login=login) as registry:
            return await _pull(registry, made.repository, build.digest)
    finally:
        if made.id:
            await session.client.registry.revoke_token(made.id)


async def _pull(registry: OciClient, repository: str, digest: str) -> bytes:
    referrers = await registry.list_referrers(repository, digest, SBOM_TYPE)
    if not referrers:
        raise NotFound(
            "this artifact has no bill of materials",
            hint="Images that are built and charts have one, if they were built by this version:"
            " exclave builds create.",
        )
    with tempfile.TemporaryDirectory(prefix="exclave-") as folder:
        file = await registry.pull_layer(
            repository, referrers[-1].digest, Path(folder) / "sbom.json"
        )
        return await asyncio.to_thread(file.read_bytes)
