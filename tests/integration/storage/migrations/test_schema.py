"""Migrations lead to the tables of the code, in both databases, and every table has a tenant."""

from datetime import UTC, datetime

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, insert, inspect, select, text
from sqlalchemy.exc import IntegrityError

from exclave.base.errors import Unavailable
from exclave.storage.engine.dialects import choose_dialect
from exclave.storage.migrate import upgrade
from exclave.storage.tables import INSTANCE_TABLES, metadata
from exclave.storage.tables.identity import orgs
from exclave.storage.tables.runners import runners
from exclave.storage.tables.work import queues

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_migrations_lead_to_the_tables_of_the_code(url: str) -> None:
    upgrade(url)
    engine = choose_dialect(url).open_writer()

    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        differences = compare_metadata(context, metadata)
    engine.dispose()

    assert differences == []


def test_migrating_twice_changes_nothing(url: str) -> None:
    upgrade(url)
    engine = choose_dialect(url).open_writer()
    with engine.begin() as connection:
        connection.execute(insert(orgs), {"id": "org_a", "name": "a", "created_at": NOW})
    before = describe(engine)

    upgrade(url)

    assert describe(engine) == before
    engine.dispose()


def describe(engine: Engine) -> tuple[object, ...]:
    """Return what a migration could change: version, columns, indexes, rows."""
    inspector = inspect(engine)
    with engine.connect() as connection:
        version = connection.execute(text("SELECT version_num FROM alembic_version")).all()
        rows = connection.execute(select(orgs)).all()
    names = sorted(inspector.get_table_names())
    columns = [str(inspector.get_columns(name)) for name in names]
    indexes = [
        (index["name"], index["column_names"], index["unique"])
        for name in names
        for index in inspector.get_indexes(name)
    ]
    return version, rows, names, columns, sorted(indexes, key=str)


def test_a_database_of_a_newer_version_is_refused(url: str) -> None:
    upgrade(url)
    engine = choose_dialect(url).open_writer()
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()

    with pytest.raises(Unavailable, match="9999"):
        upgrade(url)


def test_every_table_has_a_tenant() -> None:
    missing = [
        table.name
        for table in metadata.sorted_tables
        if table.name not in INSTANCE_TABLES and "org_id" not in table.c
    ]

    assert missing == []


def test_a_row_cannot_refer_to_another_tenants_thing(url: str) -> None:
    upgrade(url)
    engine = choose_dialect(url).open_writer()
    with engine.begin() as connection:
        for org in ("org_a", "org_b"):
            connection.execute(insert(orgs).values(id=org, name=org, created_at=NOW))
        connection.execute(insert(queues).values(org_id="org_a", id="ins_1", kind="install"))

    foreign = {
        "org_id": "org_b",
        "id": "run_1",
        "queue_id": "ins_1",
        "kind": "install",
        "name": "r",
        "state": "active",
        "public_key": "k",
        "generation": 1,
        "generation_used": True,
        "version": "1",
        "protocol": "1.0",
        "capabilities": [],
        "stats": {},
        "created_at": NOW,
    }
    with pytest.raises(IntegrityError), engine.begin() as connection:
        connection.execute(insert(runners).values(**foreign))
    engine.dispose()
