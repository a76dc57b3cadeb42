"""Credentials for the commands of one job: an endpoint on the loopback that only this job may ask.

The runner takes on the job's role; commands ask for its credentials as they would ask the metadata
server of a machine. An answer needs the secret path of the job, the token where the protocol has
one, and a socket of the job's own user.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

import h11

from exclave.base.errors import Problem
from exclave.base.secrets import Secret
from exclave.runner.audit import Audit
from exclave.runner.cloud.credentials import JobCredentials, require_keys, require_token
from exclave.runner.cloud.endpoints import ABSENT, REFUSED, Answer, Endpoint
from exclave.runner.cloud.peers import find_peer_uid
from exclave.runner.jobs.identity import IsOver
from exclave.runner.jobs.loopback import CommandConnection, LoopbackService
from exclave.runner.jobs.workspace import Workspace
from exclave.runner.logs.spool import LogWriter

_BROKEN = b'{"code":"Unavailable","message":"the cloud gave no credential to the runner"}'


@dataclass(frozen=True, slots=True)
class Owner:
    """The job that an endpoint belongs to."""

    execution: str
    uid: int | None
    """The user of its commands; None: that of the runner."""
    is_over: IsOver
    """The customer switched it off, or another runner may do its work."""


class Broker(LoopbackService):
    """Serves the credentials of one job while the block lasts."""

    def __init__(
        self,
        endpoint: Endpoint,
        credentials: JobCredentials,
        owner: Owner,
        audit: Audit,
        log: LogWriter,
    ) -> None:
        self._endpoint = endpoint
        self._credentials = credentials
        self._owner = owner
        self._audit = audit
        self._log = log
        super().__init__(self._answer)
        self._refused = 0

    def prepare(self, workspace: Workspace) -> Mapping[str, str]:
        """Return the variables of commands."""
        return self._endpoint.describe(self._server.address, workspace)

    async def read_keys(self) -> tuple[str, Secret, Secret | None]:
        """Return keys of the role, for the runner's own work on this job."""
        return require_keys(await self._credentials.get())

    async def read_token(self, resource: str = "") -> Secret:
        """Return a token of the role, for the runner's own work on this job."""
        return require_token(await self._credentials.get(resource))

    async def _answer(self, connection: CommandConnection, request: h11.Request) -> bool:
        answer = await self._decide(connection, request)
        if answer.status is HTTPStatus.FORBIDDEN:
            self._note_refusal(connection)
        else:
            connection.is_stranger = False
        _send(connection, answer)
        await connection.writer.drain()
        return answer.status is not HTTPStatus.FORBIDDEN

    async def _decide(self, connection: CommandConnection, request: h11.Request) -> Answer:
        wanted = os.geteuid() if self._owner.uid is None else self._owner.uid
        if _find_uid(connection) != wanted or self._owner.is_over():
            return REFUSED
        if request.method != b"GET":
            return ABSENT
        if await connection.receive_body(0) is None:
            return ABSENT
        headers = {name.decode("ascii"): value.decode("latin-1") for name, value in request.headers}
        try:
            return await self._endpoint.answer(request.target.decode("ascii"), headers)
        except Problem as problem:
            self._log.system(f"no credential of the job's role: {problem.message}")
            return Answer(HTTPStatus.SERVICE_UNAVAILABLE, _BROKEN)

    def _note_refusal(self, connection: CommandConnection) -> None:
        """Record the first refusal of a job; the others would only fill the disk."""
        self._refused += 1
        if self._refused == 1:
            self._audit.write(
                "credential_refused",
                execution_id=self._owner.execution,
                uid=_find_uid(connection),
            )


def _find_uid(connection: CommandConnection) -> int | None:
    transport = connection.writer.transport
    peer, server = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
    return None if peer is None or server is None else find_peer_uid(peer[:2], server[:2])


def _send(connection: CommandConnection, answer: Answer) -> None:
    headers = [
        ("Content-Length", str(len(answer.body))),
        ("Content-Type", answer.kind),
        ("Cache-Control", "no-store"),
        *answer.headers,
    ]
    reason = answer.status.phrase.encode()
    connection.send(h11.Response(status_code=answer.status, headers=headers, reason=reason))
    connection.send(h11.Data(data=answer.body))
    connection.send(h11.EndOfMessage())
