"""The calls made for one running execution: files, Terraform state, sensitive inputs, archives."""

from pathlib import Path
from typing import Protocol

import httpx

from exclave.client.exchange import ask, authorise, build_post, download, read_reply
from exclave.client.problems import UnexpectedReply
from exclave.client.transport import Link
from exclave.wire.registry import RegistryPlace
from exclave.wire.states import LockState, SealedState, StateReply, UnlockState, unpack_state
from exclave.wire.terraform import AttachmentReply, SensitiveValues

MAX_ARCHIVE = 1 << 30
"""Most bytes of an app directory's archive."""

_NO_CONTENT = 204


class WorkApi(Protocol):
    """The calls that executors make; they fail with the same errors as those of `RunnerApi`."""

    async def put_attachment(
        self, token: str, execution_id: str, name: str, *, epoch: int, data: bytes
    ) -> AttachmentReply:
        """Upload a file of this execution, replacing one of the same name."""
        ...

    async def get_attachment(self, token: str, execution_id: str, name: str) -> bytes:
        """Return a file that an execution of the same queue uploaded."""
        ...

    async def read_state(
        self, token: str, execution_id: str, *, epoch: int, workspace: str
    ) -> SealedState | None:
        """Return the newest state of a workspace; None if there is none yet."""
        ...

    async def write_state(
        self,
        token: str,
        execution_id: str,
        *,
        epoch: int,
        workspace: str,
        lock_id: str,
        state: SealedState,
    ) -> StateReply:
        """Store a new version of a state; a 409 says why it was refused."""
        ...

    async def lock_state(self, token: str, execution_id: str, request: LockState) -> None:
        """Lock a workspace; 409 `lock_held` names the holder."""
        ...

    async def unlock_state(self, token: str, execution_id: str, request: UnlockState) -> None:
        """Unlock a workspace."""
        ...

    async def get_sensitive(self, token: str, execution_id: str, *, epoch: int) -> SensitiveValues:
        """Return the sensitive inputs that the job's specification names."""
        ...

    async def get_archive(self, token: str, config_id: str, target: Path) -> None:
        """Write the archive of an app directory to a file; for build runners only."""
        ...

    async def get_registry(self, token: str) -> RegistryPlace:
        """Return where artifacts are stored."""
        ...


class HttpWorkApi:
    """`WorkApi` over HTTP, on its own connections."""

    def __init__(self, link: Link, client: httpx.AsyncClient, *, within_s: float = 120.0) -> None:
        self._link = link
        self._client = client
        self._within_s = within_s

    async def put_attachment(
        self, token: str, execution_id: str, name: str, *, epoch: int, data: bytes
    ) -> AttachmentReply:
        """Upload a file of this execution."""
        path = f"/v1/executions/{execution_id}/attachments/{name}"
        response = await self._send_bytes("PUT", path, token, {"epoch": epoch}, data)
        return read_reply(AttachmentReply, response)

    async def get_attachment(self, token: str, execution_id: str, name: str) -> bytes:
        """Return a file that an execution uploaded."""
        path = f"/v1/executions/{execution_id}/attachments/{name}"
        request = self._client.build_request("GET", path, headers=authorise(token))
        return (await self._ask(request)).content

    async def read_state(
        self, token: str, execution_id: str, *, epoch: int, workspace: str
    ) -> SealedState | None:
        """Return the newest state of a workspace."""
        request = self._client.build_request(
            "GET",
            f"/v1/executions/{execution_id}/state",
            params={"epoch": epoch, "workspace": workspace},
            headers=authorise(token),
        )
        response = await self._ask(request)
        if response.status_code == _NO_CONTENT:
            return None
        try:
            return unpack_state(response.content)
        except ValueError as error:
            raise UnexpectedReply(str(error), status=response.status_code) from error

    async def write_state(
        self,
        token: str,
        execution_id: str,
        *,
        epoch: int,
        workspace: str,
        lock_id: str,
        state: SealedState,
    ) -> StateReply:
        """Store a new version of a state."""
        path = f"/v1/executions/{execution_id}/state"
        query: dict[str, str | int] = {"epoch": epoch, "workspace": workspace, "lock_id": lock_id}
        response = await self._send_bytes("POST", path, token, query, state.pack())
        return read_reply(StateReply, response)

    async def lock_state(self, token: str, execution_id: str, request: LockState) -> None:
        """Lock a workspace."""
        path = f"/v1/executions/{execution_id}/state/lock"
        await self._ask(build_post(self._client, path, request, token))

    async def unlock_state(self, token: str, execution_id: str, request: UnlockState) -> None:
        """Unlock a workspace."""
        path = f"/v1/executions/{execution_id}/state/unlock"
        await self._ask(build_post(self._client, path, request, token))

    async def get_sensitive(self, token: str, execution_id: str, *, epoch: int) -> SensitiveValues:
        """Return the sensitive inputs that the job's specification names."""
        request = self._client.build_request(
            "GET",
            f"/v1/executions/{execution_id}/sensitive",
            params={"epoch": epoch},
            headers=authorise(token),
        )
        return read_reply(SensitiveValues, await self._ask(request))

    async def get_archive(self, token: str, config_id: str, target: Path) -> None:
        """Write the archive of an app directory to a file."""
        path = f"/v1/configs/{config_id}/archive"
        request = self._client.build_request("GET", path, headers=authorise(token))
        await download(
            self._link, self._client, request, target, within_s=self._within_s, most=MAX_ARCHIVE
        )

    async def get_registry(self, token: str) -> RegistryPlace:
        """Return where artifacts are stored."""
        request = self._client.build_request("GET", "/v1/registry", headers=authorise(token))
        return read_reply(RegistryPlace, await self._ask(request))

    async def _ask(self, request: httpx.Request) -> httpx.Response:
        return await ask(self._link, self._client, request, self._within_s)

    async def _send_bytes(
        self, method: str, path: str, token: str, query: dict[str, str | int], data: bytes
    ) -> httpx.Response:
        headers = {**authorise(token), "Content-Type": "application/octet-stream"}
        request = self._client.build_request(
            method, path, params=query, content=data, headers=headers
        )
        return await self._ask(request)
