"""The calls that one execution makes to the control plane, bound to its id and epoch."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from exclave.base.clock import Clock
from exclave.base.ids import Randomness
from exclave.client.retry import RetryPolicy, retry
from exclave.client.runner import RunnerApi
from exclave.client.transport import Link
from exclave.runner.control_plane.access_token import Session
from exclave.wire.registry import RegistryPlace
from exclave.wire.states import LockInfo, LockState, SealedState, StateReply, UnlockState
from exclave.wire.terraform import AttachmentName, AttachmentReply

T = TypeVar("T")

PATIENCE = RetryPolicy(first_s=0.2, longest_s=5.0, give_up_s=60.0)
"""How long a call is retried while the control plane is unavailable, by default."""


class Uplink:
    """Calls of one execution. Each is retried for a while if there is no response.

    A refusal raises `RemoteProblem`; 409 `superseded` means that this execution has ended.
    """

    def __init__(
        self,
        api: RunnerApi,
        session: Session,
        *,
        execution_id: str,
        epoch: int,
        link: Link,
        clock: Clock,
        randomness: Randomness,
    ) -> None:
        self._api = api
        self._session = session
        self._clock = clock
        self._randomness = randomness
        self.execution_id = execution_id
        self.epoch = epoch
        self.link = link

    @property
    def org_id(self) -> str:
        """The org of this runner, which is the first part of paths in the registry."""
        return self._session.identity.org_id

    @property
    def queue_id(self) -> str:
        """The queue that this runner serves; its id is that of the install."""
        return self._session.identity.queue_id

    async def get_token(self) -> str:
        """Return a valid access token; the registry accepts it as a bearer token."""
        return (await self._session.get_token()).reveal()

    async def put_attachment(
        self, name: AttachmentName, data: bytes, policy: RetryPolicy = PATIENCE
    ) -> AttachmentReply:
        """Upload a file of this execution, replacing one of the same name."""
        return await self._call(
            lambda token: self._api.work.put_attachment(
                token, self.execution_id, name, epoch=self.epoch, data=data
            ),
            policy,
        )

    async def get_attachment(self, execution_id: str, name: AttachmentName) -> bytes:
        """Return a file that an execution of the same queue uploaded."""
        return await self._call(
            lambda token: self._api.work.get_attachment(token, execution_id, name), PATIENCE
        )

    async def read_state(
        self, workspace: str, policy: RetryPolicy = PATIENCE
    ) -> SealedState | None:
        """Return the newest state of a workspace of this install; None if there is none yet."""
        return await self._call(
            lambda token: self._api.work.read_state(
                token, self.execution_id, epoch=self.epoch, workspace=workspace
            ),
            policy,
        )

    async def write_state(
        self, workspace: str, lock_id: str, state: SealedState, policy: RetryPolicy = PATIENCE
    ) -> StateReply:
        """Store a new version of a state."""
        return await self._call(
            lambda token: self._api.work.write_state(
                token,
                self.execution_id,
                epoch=self.epoch,
                workspace=workspace,
                lock_id=lock_id,
                state=state,
            ),
            policy,
        )

    async def lock_state(
        self, workspace: str, lock: LockInfo, policy: RetryPolicy = PATIENCE
    ) -> None:
        """Lock a workspace's state; the problem `lock_held` names the holder."""
        request = LockState(workspace=workspace, epoch=self.epoch, lock=lock)
        await self._call(
            lambda token: self._api.work.lock_state(token, self.execution_id, request), policy
        )

    async def unlock_state(
        self, workspace: str, lock_id: str, policy: RetryPolicy = PATIENCE
    ) -> None:
        """Unlock a workspace's state."""
        request = UnlockState(workspace=workspace, epoch=self.epoch, lock_id=lock_id)
        await self._call(
            lambda token: self._api.work.unlock_state(token, self.execution_id, request), policy
        )

    async def get_sensitive(self) -> dict[str, str]:
        """Return the sensitive inputs that the job's specification names."""
        reply = await self._call(
            lambda token: self._api.work.get_sensitive(token, self.execution_id, epoch=self.epoch),
            PATIENCE,
        )
        return reply.values

    async def get_archive(self, config_id: str, target: Path) -> None:
        """Write the archive of an app directory to a file; for build runners only."""
        await self._call(
            lambda token: self._api.work.get_archive(token, config_id, target), PATIENCE
        )

    async def get_registry(self) -> RegistryPlace:
        """Return where artifacts are stored."""
        return await self._call(self._api.work.get_registry, PATIENCE)

    async def _call(self, send: Callable[[str], Awaitable[T]], policy: RetryPolicy) -> T:
        return await retry(lambda: self._session.call(send), policy, self._clock, self._randomness)
