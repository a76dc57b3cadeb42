"""A job that works on one Terraform workspace, request by request."""

import hashlib

from exclave.control.terraform import states
from exclave.control.workflows import jobs
from exclave.domain.jobs import ExecutionId, JobId
from exclave.wire.runner import Offer
from exclave.wire.states import (
    LockInfo,
    LockState,
    SealedState,
    StateHeader,
    StateResource,
    UnlockState,
)
from tests.integration.control.conftest import World
from tests.support.files import get_state, put_state
from tests.support.world import FakeRunner, job, run_workflow

WORKSPACE = "component:db"


def state(serial: int, lineage: str = "line", text: str = "", ids: str = "1") -> SealedState:
    header = StateHeader(
        serial=serial,
        lineage=lineage,
        sha256=hashlib.sha256(f"{serial}{text}".encode()).hexdigest(),
        resources=[StateResource(address="terraform_data.a", type="terraform_data", id=ids)],
    )
    return SealedState(header=header, sealed=f"sealed {serial} {text}".encode())


async def begin(world: World, workspace: str = WORKSPACE, peer: FakeRunner | None = None) -> Offer:
    who = peer or world.peer
    step = job("apply", lanes=[workspace], mutating=True)
    await run_workflow(world.deps, world.user, who.who.queue, step)
    offer = (await who.poll()).offers[0]
    await who.start(offer.execution_id, offer.epoch)
    return offer


async def lock(
    world: World, offer: Offer, lock_id: str = "lock-1", workspace: str = WORKSPACE
) -> None:
    wish = LockState(
        workspace=workspace, epoch=offer.epoch, lock=LockInfo(id=lock_id, who="me@host")
    )
    await states.lock_state(world.deps, world.peer.who, ExecutionId(offer.execution_id), wish)


async def unlock(world: World, offer: Offer, lock_id: str = "lock-1") -> None:
    wish = UnlockState(workspace=WORKSPACE, epoch=offer.epoch, lock_id=lock_id)
    await states.unlock_state(world.deps, world.peer.who, ExecutionId(offer.execution_id), wish)


async def write(
    world: World, offer: Offer, given: SealedState, lock_id: str = "lock-1", *, ws: str = WORKSPACE
) -> int:
    reply = await put_state(
        world.deps, world.peer.who, ExecutionId(offer.execution_id), offer.epoch, ws, lock_id, given
    )
    return reply.version


async def read(world: World, offer: Offer, workspace: str = WORKSPACE) -> SealedState | None:
    who, execution = world.peer.who, ExecutionId(offer.execution_id)
    return await get_state(world.deps, who, execution, offer.epoch, workspace)


async def lose(world: World, offer: Offer) -> JobId:
    page = await jobs.list_jobs(
        world.deps, world.user, cursor="", limit=1, queue=None, workflow=None, state="running"
    )
    await jobs.declare_lost(world.deps, world.user, JobId(page.items[0].id), "gone")
    world.peer.alive.remove(offer.execution_id)
    return JobId(page.items[0].id)


async def count_blobs(world: World) -> int:
    return len(await world.deps.blobs.list_keys("tf-states"))
