"""What an org may store: refused beyond its quota, and never what running work has to hand in."""

from dataclasses import replace
from pathlib import Path

import pytest

from exclave.base.errors import TooLarge
from exclave.control.deps import Deps
from exclave.control.dispatch import runners
from exclave.control.installs import installs
from exclave.control.limits import usage
from exclave.control.limits.usage_counting import settle
from exclave.control.orgs import accounts
from exclave.control.workflows import workflows
from exclave.domain.identity import OrgId, Role
from exclave.domain.jobs import ExecutionId
from exclave.domain.quotas import QuotaExceeded, Quotas, Stored
from exclave.storage.engine.database import Tx
from exclave.storage.usage import (
    Account,
    Amount,
    add_usage,
    find_usage,
    note_growth,
    subtract_usage,
)
from exclave.wire.identity import GrantModel, NewToken
from exclave.wire.installs import NewInstall
from exclave.wire.specs import NoopSpec
from exclave.wire.usage import UsageLine
from exclave.wire.workflows import NewStep, NewWorkflow
from tests.integration.control.conftest import World
from tests.integration.control.syncing_kit import list_archives
from tests.integration.control.tf_kit import begin, count_blobs, lock, state, write
from tests.support.apps import make_app, sync, write_app
from tests.support.files import put_file


def limit(world: World, **quotas: int) -> Deps:
    return replace(world.deps, quotas=Quotas(**quotas))


def account(world: World, kind: Stored = Stored.REGISTRY) -> Account:
    return Account(world.user.org, kind)


async def read(world: World, kind: Stored = Stored.REGISTRY) -> Amount:
    return await world.deps.db.read(lambda tx: find_usage(tx, account(world, kind)))


def wish(world: World) -> NewWorkflow:
    return NewWorkflow(name="w", queue_id=world.queue, steps=[NewStep(name="one", job=NoopSpec())])


async def test_usage_grows_up_to_its_limit_and_shrinks_down_to_zero(world: World) -> None:
    def change(tx: Tx) -> list[bool]:
        most = Amount(100, 2)
        kept = [add_usage(tx, account(world), Amount(size, 1), most) for size in (60, 50, 40, 0)]
        subtract_usage(tx, account(world), Amount(10_000, 1))
        return kept

    assert await world.deps.db.write(change) == [True, False, True, False]
    assert await read(world) == Amount(0, 1)


async def test_what_is_undone_is_not_counted(world: World) -> None:
    def fail(tx: Tx) -> None:
        note_growth(tx, account(world, Stored.LOGS), Amount(5, 1))
        add_usage(tx, account(world), Amount(7, 1))
        raise QuotaExceeded("no")

    with pytest.raises(QuotaExceeded):
        await world.deps.db.write(fail)
    await settle(world.deps)

    assert await read(world) == await read(world, Stored.LOGS) == Amount()


async def test_growth_is_written_a_moment_later(world: World) -> None:
    for _ in range(3):
        await world.deps.db.write(
            lambda tx: note_growth(tx, account(world, Stored.LOGS), Amount(5, 1))
        )
    before = await read(world, Stored.LOGS)

    await settle(world.deps)
    await settle(world.deps)

    assert (before, await read(world, Stored.LOGS)) == (Amount(), Amount(15, 3))


async def test_an_org_that_used_up_its_logs_begins_no_workflow_and_others_do(world: World) -> None:
    few = limit(world, logs_bytes=10)
    other = Account(OrgId("org_other"), Stored.LOGS)
    assert other.org != world.user.org
    await few.db.write(lambda tx: note_growth(tx, account(world, Stored.LOGS), Amount(11, 1)))
    await workflows.create_workflow(few, world.user, wish(world))

    await settle(few)

    with pytest.raises(QuotaExceeded, match="logs"):
        await workflows.create_workflow(few, world.user, wish(world))
    few.exhausted_quotas.begin_work(few.quotas, other.org)


async def test_workflows_that_have_not_ended_are_limited(world: World) -> None:
    few = limit(world, workflows=2)
    made = [await workflows.create_workflow(few, world.user, wish(world)) for _ in range(2)]
    with pytest.raises(QuotaExceeded, match="2 workflows"):
        await workflows.create_workflow(few, world.user, wish(world))

    await workflows.cancel_workflow(few, world.user, made[0].id)  # type: ignore[arg-type]
    await settle(few)

    await workflows.create_workflow(few, world.user, wish(world))


async def test_tokens_enrolments_and_installs_are_limited(world: World) -> None:
    few = limit(world, tokens=2, enrolments=1, installs=2)
    token = NewToken(name="t", account="a", grants=[GrantModel(role=Role.VIEWER)], expires_in_s=60)
    await accounts.create_token(few, world.user, token)
    await runners.create_enrolment(few, world.user, world.queue)
    await installs.create_install(few, world.user, NewInstall(name="second"))

    with pytest.raises(QuotaExceeded, match="2 tokens"):
        await accounts.create_token(few, world.user, token)
    with pytest.raises(QuotaExceeded, match="1 enrolments"):
        await runners.create_enrolment(few, world.user, world.queue)
    with pytest.raises(QuotaExceeded, match="2 installs"):
        await installs.create_install(few, world.user, NewInstall(name="third"))

    world.clock.advance(few.timings.enrolment_s + 1)
    await accounts.create_token(few, world.user, token)
    await runners.create_enrolment(few, world.user, world.queue)


async def test_usage_is_shown_with_its_limits(world: World) -> None:
    few = limit(world, registry_bytes=100, tokens=7, logs_bytes=0)
    await few.db.write(lambda tx: add_usage(tx, account(world), Amount(60, 2)))

    shown = {line.kind: line for line in (await usage.show_usage(few, world.user)).kinds}

    assert shown["registry"] == UsageLine(
        kind="registry", bytes=60, bytes_limit=100, items=2, items_limit=None
    )
    assert shown["tokens"] == UsageLine(
        kind="tokens", bytes=None, bytes_limit=None, items=1, items_limit=7
    )
    assert shown["logs"].bytes_limit is None


async def test_files_of_an_execution_are_limited_and_evidence_is_not(world: World) -> None:
    offer = await begin(world)
    execution = ExecutionId(offer.execution_id)
    few = limit(world, attachments_per_execution_bytes=100)

    async def put(name: str, size: int) -> None:
        await put_file(few, world.peer.who, execution, name, offer.epoch, bytes(size))

    await put("plan.sealed", 90)
    await put("plan.sealed", 95)
    with pytest.raises(TooLarge, match="100 bytes"):
        await put("plan.sealed", 101)
    await put("journal.jsonl", 1000)

    assert await read(world, Stored.ATTACHMENTS) == Amount(1095, 2)
    assert len(await few.blobs.list_keys("attachments")) == 2


async def test_files_beyond_the_quota_of_the_org_are_refused(world: World) -> None:
    offer = await begin(world)
    execution = ExecutionId(offer.execution_id)
    few = limit(world, attachments_bytes=100)

    with pytest.raises(QuotaExceeded, match="attachments"):
        await put_file(few, world.peer.who, execution, "plan.sealed", offer.epoch, bytes(101))
    await put_file(few, world.peer.who, execution, "journal.jsonl", offer.epoch, bytes(101))

    assert await read(world, Stored.ATTACHMENTS) == Amount(101, 1)
    assert len(await few.blobs.list_keys("attachments")) == 1


async def test_a_running_apply_may_pass_the_quota_of_states_but_not_twice(world: World) -> None:
    offer = await begin(world)
    await lock(world, offer)
    first = state(1)
    size = len(first.sealed)
    few = replace(world, deps=limit(world, tf_states_bytes=size + 1))

    await write(few, offer, first)
    await write(few, offer, state(2))
    with pytest.raises(QuotaExceeded, match="tf_states"):
        await write(few, offer, state(3))
    await settle(few.deps)

    assert await read(world, Stored.TF_STATES) == Amount(2 * size, 2)
    assert await count_blobs(world) == 2
    with pytest.raises(QuotaExceeded, match="tf_states"):
        await workflows.create_workflow(few.deps, world.user, wish(world))


async def test_states_of_one_execution_have_a_limit_of_their_own(world: World) -> None:
    offer = await begin(world)
    await lock(world, offer)
    few = replace(world, deps=limit(world, tf_states_per_execution_bytes=15))

    await write(few, offer, state(1))
    with pytest.raises(TooLarge, match="15 bytes"):
        await write(few, offer, state(2))

    assert await count_blobs(world) == 1


async def test_a_config_beyond_the_quota_leaves_nothing(world: World, tmp_path: Path) -> None:
    await make_app(world.deps, world.user)
    folder = write_app(tmp_path)
    few = limit(world, configs_bytes=1000)

    with pytest.raises(QuotaExceeded, match="configs"):
        await sync(few, world.user, folder)
    refused = await list_archives(world.deps)
    await sync(world.deps, world.user, folder)

    assert refused == []
    assert len(await list_archives(world.deps)) == 1
    used = await read(world, Stored.CONFIGS)
    assert (used.bytes > 1000, used.items) == (True, 1)
