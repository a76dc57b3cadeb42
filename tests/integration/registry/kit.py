"""The registry behind the Runner API, with callers of every kind and content to push."""

import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from sqlalchemy import insert

from exclave.api.runner import build_runner_app
from exclave.control.deps import Deps
from exclave.control.registry.tokens import create_registry_token
from exclave.domain.identity import OrgId, QueueId
from exclave.registry import build_registry_app
from exclave.storage.engine.database import Tx
from exclave.storage.tables.apps import apps, configs
from exclave.storage.tables.installs import app_installs
from exclave.wire.registry import NewRegistryToken
from tests.integration.api.kit import Caller, make_admin, open_client
from tests.support.world import ManualClock

EMPTY = b"{}"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
EMPTY_TYPE = "application/vnd.oci.empty.v1+json"


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def descriptor(data: bytes, kind: str = "application/octet-stream") -> dict[str, Any]:
    return {"mediaType": kind, "digest": digest_of(data), "size": len(data)}


def write(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document).encode()


def make_manifest(*layers: bytes, subject: bytes | None = None, **more: Any) -> bytes:
    document: dict[str, Any] = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": descriptor(EMPTY, EMPTY_TYPE),
        "layers": [descriptor(layer) for layer in layers],
        **more,
    }
    if subject is not None:
        document["subject"] = descriptor(subject, MANIFEST)
    return write(document)


def make_index(*manifests: bytes, **more: Any) -> bytes:
    listed = [descriptor(each, MANIFEST) for each in manifests]
    return write({"schemaVersion": 2, "mediaType": INDEX, "manifests": listed, **more})


@dataclass(frozen=True)
class Hub:
    """A registry with one org, and a client that may do everything in it."""

    deps: Deps
    clock: ManualClock
    http: httpx.AsyncClient
    admin: Caller
    token: str

    @property
    def org(self) -> OrgId:
        return self.admin.user.org

    def name(self, repository: str = "apps/demo") -> str:
        return f"/v2/{self.org}/{repository}"

    async def call(
        self, method: str, path: str, token: str | None = None, **rest: Any
    ) -> httpx.Response:
        """Send a request below `/v2/<org>/apps/demo`, or to a path that begins with a slash."""
        where = path if path.startswith("/") else f"{self.name()}/{path}"
        sent = dict(rest.pop("headers", {}))
        bearer = self.token if token is None else token
        if bearer:
            sent["Authorization"] = f"Bearer {bearer}"
        return await self.http.request(method, where, headers=sent, **rest)

    async def push(self, data: bytes, repository: str = "apps/demo") -> str:
        """Push a blob in one go."""
        digest = digest_of(data)
        path = f"{self.name(repository)}/blobs/uploads/?digest={digest}"
        reply = await self.call("POST", path, content=data)
        assert reply.status_code == 201, reply.text
        return digest

    async def put(
        self,
        document: bytes,
        reference: str = "",
        kind: str = MANIFEST,
        repository: str = "apps/demo",
    ) -> httpx.Response:
        path = f"{self.name(repository)}/manifests/{reference or digest_of(document)}"
        return await self.call("PUT", path, content=document, headers={"Content-Type": kind})

    async def publish(
        self, *layers: bytes, tag: str = "", repository: str = "apps/demo", **more: Any
    ) -> bytes:
        """Push layers and the manifest that names them."""
        for data in (EMPTY, *layers):
            await self.push(data, repository)
        document = make_manifest(*layers, **more)
        reply = await self.put(document, tag, repository=repository)
        assert reply.status_code == 201, reply.text
        return document

    async def make_token(
        self, repository: str = "*", *, push: bool = False, minutes: int = 60
    ) -> str:
        wish = NewRegistryToken(repository=repository, push=push, minutes=minutes)
        return (await create_registry_token(self.deps, self.admin.user, wish)).password

    async def count_keys(self) -> int:
        return len(await self.deps.blobs.list_keys(f"registry/{self.org}"))


@asynccontextmanager
async def serve_hub(deps: Deps) -> AsyncIterator[Hub]:
    clock = deps.clock
    assert isinstance(clock, ManualClock)
    admin = await make_admin(deps, deps.ids.new("org").replace("_", "-"))
    wish = NewRegistryToken(repository="*", push=True, minutes=24 * 60)
    made = await create_registry_token(deps, admin.user, wish)
    app = build_runner_app(deps, registry_app=build_registry_app(deps))
    async with open_client(app) as http:
        yield Hub(deps, clock, http, admin, made.password)


async def make_app(deps: Deps, org: OrgId, name: str, install: QueueId | None = None) -> str:
    """Create an app with one version, and let an install be of it."""
    app, config = deps.ids.new("app"), deps.ids.new("cfg")

    def make(tx: Tx) -> None:
        tx.run(
            insert(apps).values(org_id=org, id=app, name=name, created_at=tx.now, created_by="x")
        )
        tx.run(
            insert(configs).values(
                org_id=org,
                id=config,
                app_id=app,
                version=1,
                digest="d",
                archive="a",
                archive_digest="d",
                outline={},
                created_at=tx.now,
                created_by="x",
            )
        )
        if install is not None:
            tx.run(
                insert(app_installs).values(
                    org_id=org,
                    install_id=install,
                    app_id=app,
                    config_id=config,
                    target="local",
                    state="active",
                    approve_all=False,
                    here=False,
                    managed_by="",
                    state_version=0,
                    input_version=0,
                )
            )

    await deps.db.write(make)
    return config
