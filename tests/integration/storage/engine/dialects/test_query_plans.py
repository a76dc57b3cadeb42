"""PostgreSQL finds what is written by its key, however small a table was when it made its plan."""

import pytest
from sqlalchemy import text

from exclave.storage.engine.database import Database, Tx
from exclave.storage.engine.dialects.postgres_session import _write_update
from exclave.storage.tables.work import steps

pytestmark = pytest.mark.parametrize("url", ["postgres"], indirect=True)


def explain(tx: Tx, sql: str) -> str:
    rows = tx.all(text("EXPLAIN " + sql.replace("$1::json", "json '[]'")))
    return "\n".join(row[0] for row in rows)


async def test_a_set_of_rows_is_updated_by_their_keys(db: Database) -> None:
    _, sql = _write_update(steps, ("org_id", "workflow_id", "position", "state"), ())

    plan = await db.write(lambda tx: explain(tx, sql))

    assert "Index Scan using steps_pkey on steps" in plan, plan


async def test_a_search_is_planned_freely(db: Database) -> None:
    def show(tx: Tx) -> list[str]:
        ways = ("seqscan", "hashjoin", "mergejoin")
        return [tx.all(text(f"SHOW enable_{way}"))[0][0] for way in ways]

    assert await db.read(show) == ["on"] * 3
    assert await db.write(show) == ["off"] * 3
