"""What a server remembers of a workflow is what it would read, or it reads."""

from collections.abc import Awaitable
from dataclasses import dataclass
from random import Random

import pytest

from exclave.base.errors import Conflict, Problem
from exclave.control.progress.advance import advance
from exclave.control.progress.workflow_events import WorkflowEvent
from exclave.control.workflows import workflows
from exclave.domain.workflows import WorkflowId
from exclave.flow.events import ApproveAllSet, CancelRequested
from exclave.storage import workflows as stored
from exclave.storage.engine.database import Tx
from exclave.storage.engine.workflow_cache import WorkflowCache
from exclave.storage.workflows import Loaded
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Outcome
from exclave.wire.workflows import Approve, Deny, SendEvent, StepReply
from tests.integration.control.conftest import World
from tests.support.world import gate, job, run_workflow, wait

FAILED = Outcome(state=OutcomeState.FAILED, reason=Reason.EXIT_CODE, exit_code=1)
NONE = "sha256:" + "0" * 64
STEPS = (
    job("plan"), gate("approve", "plan"), job("apply", "approve", lanes=["component:a"], mutating=True),
    wait("hear"), job("after", "hear", lanes=["component:b"]), gate("last", "apply", "after"),
    job("end", "last"),
)  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
async def test_what_is_remembered_is_what_is_stored(world: World, seed: int) -> None:
    random = Random(seed)
    made = await run_workflow(world.deps, world.user, world.queue, *STEPS)
    workflow = WorkflowId(made.id)
    remembered = 0
    for _ in range(30):
        try:
            await choose(world, workflow, random)
        except Problem:
            continue
        remembered += await compare(world, workflow)

    assert remembered > 0


async def choose(world: World, workflow: WorkflowId, random: Random) -> None:
    """Do one of the things that may happen to a workflow."""
    shown = await workflows.show_workflow(world.deps, world.user, workflow)
    step = random.choice(shown.steps)
    await random.choice(
        (
            world.peer.work,
            world.peer.work,
            lambda: world.peer.work(FAILED),
            lambda: answer(world, workflow, step),
            lambda: answer(world, workflow, step),
            lambda: workflows.retry_step(world.deps, world.user, workflow, step.name),
            lambda: workflows.skip_step(world.deps, world.user, workflow, step.name, "not needed"),
            lambda: workflows.deny_step(
                world.deps,
                world.user,
                workflow,
                step.name,
                Deny(digest=step.digest or NONE, skip=True),
            ),
        )
    )()


def answer(world: World, workflow: WorkflowId, step: StepReply) -> Awaitable[object]:
    if step.kind == "gate":
        yes = Approve(digest=step.digest or NONE)
        return workflows.approve_step(world.deps, world.user, workflow, step.name, yes)
    event = SendEvent(outputs={"ok": True})
    return workflows.send_event(world.deps, world.user, workflow, step.name, event)


async def compare(world: World, workflow: WorkflowId) -> bool:
    """Check a workflow against what is stored; tell whether it was remembered."""
    key = (world.user.org, workflow)

    def look(tx: Tx) -> bool:
        loaded = stored.load_locked(tx, [key])[key]
        remembered = loaded is tx.cache.get(key, loaded.revision)
        tx.cache = WorkflowCache()
        assert loaded == stored.load_locked(tx, [key])[key]
        return remembered

    return await world.deps.db.write(look)


async def test_what_was_undone_is_not_remembered(world: World) -> None:
    made = await run_workflow(world.deps, world.user, world.queue, wait("hear"))
    key = (world.user.org, WorkflowId(made.id))

    def change_mind(tx: Tx) -> None:
        advance(tx, world.deps, [WorkflowEvent(*key, ApproveAllSet(on=True))])
        raise Conflict("not like that")

    with pytest.raises(Conflict):
        await world.deps.db.write(change_mind)

    assert await compare(world, key[1])


async def test_what_another_server_changed_is_read_again(world: World) -> None:
    made = await run_workflow(world.deps, world.user, world.queue, wait("hear"), wait("too"))
    key = (world.user.org, WorkflowId(made.id))

    def change_elsewhere(tx: Tx) -> None:
        tx.cache = WorkflowCache()
        advance(tx, world.deps, [WorkflowEvent(*key, CancelRequested())])

    def load(tx: Tx) -> Loaded:
        return stored.load_locked(tx, [key])[key]

    await world.deps.db.write(change_elsewhere)

    assert (await world.deps.db.write(load)).value.cancel_requested


@dataclass(frozen=True)
class Row:
    """A value to keep."""

    revision: int


def test_what_nobody_used_for_longest_is_forgotten() -> None:
    cache = WorkflowCache(most=2)
    a, b, c = Row(1), Row(1), Row(1)
    cache.put("a", a)
    cache.put("b", b)
    cache.get("a", 1)
    cache.put("c", c)

    assert [cache.get(key, 1) for key in "abc"] == [a, None, c]


def test_a_value_of_another_revision_is_not_returned() -> None:
    cache = WorkflowCache()
    cache.put("a", Row(1))

    assert cache.get("a", 2) is None
    assert cache.peek("a")
