"""Single requests that once did harm, or would without their guard: no simulation needed."""

from dataclasses import replace
from unittest.mock import patch

import pytest
from sqlalchemy import select

from exclave.base.errors import Unauthenticated
from exclave.control.access import authenticate_runner
from exclave.control.background import timers
from exclave.control.chores import RowWorker
from exclave.control.dispatch import enrolment
from exclave.storage import workflows as stored_workflows
from exclave.storage.tables.runners import runners
from exclave.storage.tables.work import executions
from exclave.wire.envelope import encode_bytes
from exclave.wire.runner import AskToken, token_message
from tests.faults.sim.stage import APPLY
from tests.support.world import (
    ManualClock,
    enrol_fake_runner,
    gate,
    make_deps,
    make_install,
    make_org,
    run_workflow,
)


async def test_many_waiting_workflows_do_not_keep_the_sweep_from_the_others() -> None:
    clock = ManualClock()
    deps = make_deps(clock)
    user = await make_org(deps)
    queue = await make_install(deps, user)
    for _ in range(3):
        await run_workflow(deps, user, queue, gate("gate"))
    clock.advance(120)
    began = clock.now()

    with patch.object(timers, "_BATCH", 2):
        await timers.move_unmoved(deps, RowWorker(deps, timers.UNMOVED))

    left = await deps.db.read(lambda tx: stored_workflows.list_unmoved(tx, began, 10))
    assert len(left) == 1


async def test_a_copy_of_the_poll_that_brought_an_offer_proves_no_stop() -> None:
    deps = make_deps(ManualClock())
    user = await make_org(deps)
    queue = await make_install(deps, user)
    peer = await enrol_fake_runner(deps, user, queue)
    await run_workflow(deps, user, queue, APPLY)
    (offer,) = (await peer.poll(nonce="nonce-of-the-poll")).offers
    drawn = peer.no
    await peer.start(offer.execution_id, offer.epoch)
    later = replace(peer, no=drawn - 1, alive=[])

    reply = await later.poll(nonce="nonce-of-the-poll", free=0)

    rows = await deps.db.read(lambda tx: tx.all(select(executions.c.state)))
    assert not reply.offers
    assert [row.state for row in rows] == ["running"]


async def test_a_late_copy_of_a_token_request_locks_nobody_out() -> None:
    """Found by seed 4: a copy within the nonce's minute looked like a second holder of the key."""
    deps = make_deps(ManualClock())
    user = await make_org(deps)
    peer = await enrol_fake_runner(deps, user, await make_install(deps, user))
    me = peer.enrolled.runner_id
    nonce = (await enrolment.issue_nonce(deps, me)).nonce  # type: ignore[arg-type]
    signature = encode_bytes(peer.key.sign(token_message(me, nonce, 2)))
    request = AskToken(runner_id=me, nonce=nonce, generation=2, signature=signature)
    reply = await enrolment.issue_token(deps, request)
    await authenticate_runner(deps, reply.access_token)

    with pytest.raises(Unauthenticated):
        await enrolment.issue_token(deps, request)

    rows = await deps.db.read(lambda tx: tx.all(select(runners.c.state)))
    assert [row.state for row in rows] == ["active"]
