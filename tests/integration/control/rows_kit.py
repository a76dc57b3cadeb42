"""Rows of a database, counted: what changed nothing leaves as many as before."""

from collections.abc import Collection

from sqlalchemy import func, select

from exclave.control.deps import Deps
from exclave.storage.engine.database import Tx
from exclave.storage.tables import metadata


async def count_rows(deps: Deps, names: Collection[str] = metadata.tables) -> dict[str, int]:
    """Count the rows of these tables, or of all."""

    def count(tx: Tx) -> dict[str, int]:
        tables = [metadata.tables[name] for name in names]
        return {t.name: tx.run(select(func.count()).select_from(t)).scalar_one() for t in tables}

    return await deps.db.read(count)
