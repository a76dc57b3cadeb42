"""Log streams of a running job: make them, write them, read them back."""

import zstandard

from exclave.control.logs.logs import append_log, read_log
from exclave.control.workflows import jobs
from exclave.domain.jobs import ExecutionId, JobId
from exclave.wire.logs import Stream, write_record
from exclave.wire.runner import Offer, Outcome
from tests.integration.control.conftest import World
from tests.support.world import job, run_workflow


def piece(*texts: str, first: int = 0) -> bytes:
    return b"".join(
        write_record(first + n, 10 * n, Stream.STDOUT, text) for n, text in enumerate(texts)
    )


def pack(data: bytes) -> bytes:
    return zstandard.compress(data)


async def begin(world: World) -> tuple[Offer, JobId]:
    await run_workflow(world.deps, world.user, world.queue, job("one"))
    offer = (await world.peer.poll()).offers[0]
    await world.peer.start(offer.execution_id, offer.epoch)
    page = await jobs.list_jobs(
        world.deps, world.user, cursor="", limit=1, queue=None, workflow=None, state=None
    )
    return offer, JobId(page.items[0].id)


async def send(world: World, offer: Offer, offset: int, data: bytes) -> int:
    reply = await append_log(
        world.deps, world.peer.who, ExecutionId(offer.execution_id), offer.epoch, offset, pack(data)
    )
    return reply.next_offset


async def texts(world: World, found: JobId, offset: int = 0) -> list[str]:
    page = await read_log(world.deps, world.user, found, execution=None, offset=offset, limit=1000)
    return [record.text for record in page.records]


async def finish(world: World, offer: Offer, end: int) -> None:
    done = Outcome(state="succeeded", reason="completed", log_end=end)
    await world.peer.hand_in(offer.execution_id, offer.epoch, done)
