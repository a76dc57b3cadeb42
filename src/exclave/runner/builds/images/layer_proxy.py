"""A registry on the loopback interface with one repository: the layer cache of one component.

buildah gets a password for it and no credential of the org's registry. Any other repository, and
other ways to change it, are refused.
"""

import base64
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs, urlsplit

import h11

from exclave.base.digests import digest_bytes
from exclave.base.errors import Problem
from exclave.base.ids import Randomness
from exclave.base.secrets import Secret
from exclave.client.oci.auth import Login
from exclave.client.oci.documents import MAX_MANIFEST
from exclave.client.oci.manifests import FetchedManifest
from exclave.runner.builds.images.layer_store import Arriving, LayerStore
from exclave.runner.jobs.loopback import CommandConnection, LoopbackService, make_secret

REPOSITORY: Final = "layers"
_USER: Final = "exclave"
_ASK: Final = {"Connection": "close", "WWW-Authenticate": 'Basic realm="layers"'}
_PATH: Final = re.compile(
    rf"/v2/(?:{REPOSITORY}/(?:"
    r"(?P<kind>manifests|blobs)/(?P<reference>[0-9a-f]{64}|sha256:[0-9a-f]{64})"
    r"|blobs/uploads/(?P<upload>[0-9]{0,6})))?"
)
_PORTS: Final = (20_000, 10_000)
"""The first port, and how many there are to choose from."""


def choose_port(name: str) -> int:
    """Return the port of a component's cache, the same each time.

    buildah writes the name of a cached image, and so the port, into what it builds upon it.
    """
    first, count = _PORTS
    return first + int(digest_bytes(name.encode()).removeprefix("sha256:")[:8], 16) % count


@dataclass(frozen=True, slots=True)
class _Reply:
    status: HTTPStatus
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


_MISSING: Final = _Reply(HTTPStatus.NOT_FOUND)


class LayerProxy(LoopbackService):
    """Serves while the block lasts."""

    def __init__(self, store: LayerStore, randomness: Randomness) -> None:
        self._store = store
        self.login = Login(_USER, Secret(make_secret(randomness)))
        super().__init__(self._answer, port=choose_port(store.repository.name))
        self._uploads: dict[str, Arriving] = {}
        self._count = 0

    @property
    def host(self) -> str:
        """Host and port, as buildah names a registry."""
        return self._server.address.removeprefix("http://")

    @property
    def repository(self) -> str:
        """The only repository, as buildah names it."""
        return f"{self.host}/{REPOSITORY}"

    async def _answer(self, connection: CommandConnection, request: h11.Request) -> bool:
        """Answer a request; return whether the connection can be used again."""
        if not self._is_authorised(request):
            # The body of a stranger is not read, so the connection cannot go on.
            await _send(connection, _Reply(HTTPStatus.UNAUTHORIZED, _ASK))
            return False
        connection.is_stranger = False
        url = urlsplit(request.target.decode("ascii", "replace"))
        path = _PATH.fullmatch(url.path)
        method = request.method.decode()
        if method in {"GET", "HEAD"}:
            await connection.receive_body(0)
        if path is None:
            reply = _MISSING
        elif path["kind"] == "blobs" and method == "GET":
            return await self._send_blob(connection, str(path["reference"]))
        elif path["upload"] is not None:
            digest = parse_qs(url.query).get("digest", [""])[0]
            reply = await self._receive(connection, method, path["upload"], digest)
        elif path["kind"] is not None:
            reply = await self._find(connection, request, str(path["kind"]), str(path["reference"]))
        else:
            reply = _Reply(HTTPStatus.OK)
        if connection.http.their_state is h11.SEND_BODY:
            await connection.receive_body(0)
        await _send(connection, reply, has_body=method != "HEAD")
        return True

    def _is_authorised(self, request: h11.Request) -> bool:
        given = dict(request.headers).get(b"authorization", b"")
        both = f"{_USER}:{self.login.password.reveal()}".encode()
        return hmac.compare_digest(given, b"Basic " + base64.b64encode(both))

    async def _find(
        self, connection: CommandConnection, request: h11.Request, kind: str, reference: str
    ) -> _Reply:
        method = request.method.decode()
        if kind == "manifests" and method == "PUT":
            media_type = dict(request.headers).get(b"content-type", b"").decode("ascii", "replace")
            return await self._add_manifest(connection, reference, media_type)
        if method not in {"GET", "HEAD"}:
            return _Reply(HTTPStatus.METHOD_NOT_ALLOWED)
        if kind == "blobs":
            size = await self._store.find_size(reference)
            return _MISSING if size is None else _describe(reference, size)
        fetched = await self._store.find_manifest(reference)
        if fetched is None:
            return _MISSING
        headers = {"Content-Type": fetched.media_type, "Docker-Content-Digest": fetched.digest}
        return _Reply(HTTPStatus.OK, headers, fetched.data)

    async def _add_manifest(
        self, connection: CommandConnection, reference: str, media_type: str
    ) -> _Reply:
        data = await connection.receive_body(MAX_MANIFEST)
        if data is None:
            return _Reply(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        fetched = FetchedManifest(digest_bytes(data), media_type, data)
        self._store.add_manifest(reference, fetched)
        return _Reply(HTTPStatus.CREATED, {"Docker-Content-Digest": fetched.digest})

    async def _receive(
        self, connection: CommandConnection, method: str, upload: str, digest: str
    ) -> _Reply:
        """Begin an upload, append to it, or end it; mounts begin an upload too."""
        if method == "POST" and not upload:
            self._count += 1
            upload = str(self._count)
            self._uploads[upload] = self._store.begin(upload)
            return _Reply(HTTPStatus.ACCEPTED, {"Location": _locate(upload)})
        arriving = self._uploads.get(upload)
        if arriving is None or method not in {"PATCH", "PUT"}:
            return _MISSING
        async for piece in connection.read_body():
            self._store.write(arriving, piece)
        if method == "PATCH":
            headers = {"Location": _locate(upload), "Range": f"0-{max(0, arriving.size - 1)}"}
            return _Reply(HTTPStatus.ACCEPTED, headers)
        del self._uploads[upload]
        if not self._store.end(arriving, digest):
            return _Reply(HTTPStatus.BAD_REQUEST)
        return _Reply(HTTPStatus.CREATED, {"Docker-Content-Digest": digest})

    async def _send_blob(self, connection: CommandConnection, digest: str) -> bool:
        """Send a blob while it is being downloaded; a failure breaks the connection."""
        size = await self._store.find_size(digest)
        if size is None:
            await _send(connection, _MISSING)
            return True
        described = _describe(digest, size)
        connection.send(h11.Response(status_code=200, headers=list(described.headers.items())))
        try:
            async for piece in self._store.read(digest, size):
                connection.send(h11.Data(data=piece))
                await connection.writer.drain()
        except Problem:
            return False
        connection.send(h11.EndOfMessage())
        await connection.writer.drain()
        return True


def _describe(digest: str, size: int) -> _Reply:
    headers = {"Content-Length": str(size), "Docker-Content-Digest": digest}
    return _Reply(HTTPStatus.OK, headers)


def _locate(upload: str) -> str:
    return f"/v2/{REPOSITORY}/blobs/uploads/{upload}"


async def _send(connection: CommandConnection, reply: _Reply, *, has_body: bool = True) -> None:
    headers = {"Content-Length": str(len(reply.body)), **reply.headers}
    reason = reply.status.phrase.encode()
    response = h11.Response(status_code=reply.status, headers=list(headers.items()), reason=reason)
    connection.send(response)
    if has_body and reply.body:
        connection.send(h11.Data(data=reply.body))
    connection.send(h11.EndOfMessage())
    await connection.writer.drain()
