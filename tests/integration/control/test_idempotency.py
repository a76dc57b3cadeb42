"""A use case under an idempotency key has the same database as one without."""

import pytest

from exclave.base.errors import Conflict
from exclave.control.deps import Deps
from exclave.control.idempotency import AlreadyDone, Reply, answer_once
from exclave.domain.identity import User
from exclave.storage.engine.database import Transactions, Tx
from tests.support.world import make_install


async def run_under_key(deps: Deps, user: User) -> Transactions:
    given: list[Transactions] = []

    async def use_case(keyed: Deps) -> Reply:
        given.append(keyed.db)
        return 200, None

    await answer_once(deps, user, "k", ["POST", "/"], use_case)
    return given[0]


async def test_a_use_case_reaches_everything_that_deps_offer_of_the_database(
    deps: Deps, user: User
) -> None:
    keyed = await run_under_key(deps, user)

    offered = [name for name in vars(Transactions) if not name.startswith("_")]
    assert sorted(offered) == ["dialect", "growth", "read", "write", "write_each"]
    for name in offered:
        assert hasattr(keyed, name), name
    assert keyed.dialect is deps.db.dialect
    assert keyed.growth is deps.db.growth


async def test_every_way_to_write_spends_the_key_once(deps: Deps, user: User) -> None:
    def note(tx: Tx, commands: list[str]) -> list[str]:
        del tx
        return [f"noted {command}" for command in commands]

    async def write_each(keyed: Deps) -> Reply:
        noted = await keyed.db.write_each(note, "it")  # type: ignore[arg-type]
        await make_install(keyed, user)
        return 200, noted

    async def write(keyed: Deps) -> Reply:
        return 200, await keyed.db.write(lambda tx: str(tx.now))

    first = await answer_once(deps, user, "k", ["POST", "/a"], write_each, keep=False)

    assert first == (200, "noted it")
    with pytest.raises(AlreadyDone):
        await answer_once(deps, user, "k", ["POST", "/a"], write)


async def test_a_write_that_is_undone_leaves_the_key_to_the_next_one(
    deps: Deps, user: User
) -> None:
    def fail(tx: Tx) -> None:
        del tx
        raise Conflict("not now")

    async def try_twice(keyed: Deps) -> Reply:
        with pytest.raises(Conflict):
            await keyed.db.write(fail)
        await keyed.db.write(lambda tx: str(tx.now))
        return 200, None

    await answer_once(deps, user, "k", ["POST", "/a"], try_twice, keep=False)

    with pytest.raises(AlreadyDone):
        await answer_once(deps, user, "k", ["POST", "/a"], try_twice, keep=False)
