"""Migrations keep what an older version stored, and decide what it could not say."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, column, insert, table, text

from exclave.storage import migrate
from exclave.storage.engine.dialects import choose_dialect
from exclave.storage.engine.types import Json
from tests.support.databases import NAMES, get_postgres

_ORGS = table("orgs", column("id"), column("name"), column("created_at"))
_ACCOUNTS = table("accounts", column("org_id"), column("id"), column("name"), column("created_at"))
_TOKENS = table(
    "api_tokens",
    column("org_id"),
    column("id"),
    column("account_id"),
    column("name"),
    column("prefix"),
    column("hash"),
    column("grants", Json),
    column("created_at"),
    column("expires_at"),
)
_ADMIN = [["admin", "org", ""]]
_NARROW = [["admin", "install", "ins_1"]]
_OPERATOR = [["operator", "org", ""]]


@pytest.fixture(params=NAMES)
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database that no migration has touched."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'old.db'}"
        return
    server = get_postgres()
    yield server.create_database("never_migrated")
    server.drop_database("never_migrated")


def test_the_admins_of_the_oldest_org_become_the_instance_admins(empty_url: str) -> None:
    engine = choose_dialect(empty_url).open_writer()
    with engine.connect() as connection:
        command.upgrade(_configure(connection), "0007")
        _add_org(connection, "org_b", created_at=1)
        _add_org(connection, "org_a", created_at=2)
        _add_token(connection, "org_b", "tok_1", _ADMIN)
        _add_token(connection, "org_b", "tok_2", _OPERATOR)
        _add_token(connection, "org_b", "tok_3", _NARROW)
        _add_token(connection, "org_a", "tok_4", _ADMIN)
        connection.commit()

    migrate.upgrade(empty_url)

    with engine.connect() as connection:
        rows = connection.execute(text("SELECT id FROM api_tokens WHERE instance_admin")).all()
    engine.dispose()
    assert [row.id for row in rows] == ["tok_1"]


def test_what_is_stored_already_is_counted(empty_url: str) -> None:
    engine = choose_dialect(empty_url).open_writer()
    with engine.connect() as connection:
        command.upgrade(_configure(connection), "0008")
        _add_org(connection, "org_a", created_at=1)
        _add_org(connection, "org_b", created_at=2)
        for statement in _STORED.split(";"):
            connection.exec_driver_sql(statement)
        connection.commit()

    migrate.upgrade(empty_url)

    with engine.connect() as connection:
        rows = connection.execute(text("SELECT * FROM org_usage ORDER BY kind, scope")).all()
        reserved = connection.execute(text("SELECT reserved FROM oci_uploads")).scalar_one()
    engine.dispose()
    assert [tuple(row) for row in rows] == [
        ("org_a", "", "documents", 28, 3),
        ("org_a", "ins_1", "documents", 28, 3),
        ("org_a", "", "registry", 40, 2),
        ("org_a", "", "uploads", 0, 1),
    ]
    assert reserved == 7


_STORED = """
INSERT INTO queues (org_id, id, kind, counter, seq) VALUES ('org_a', 'ins_1', 'install', 0, 0);
INSERT INTO installs (org_id, id, name, labels, created_at)
VALUES ('org_a', 'ins_1', 'one', '{}', 1);
INSERT INTO install_states (org_id, install_id, version, at, cause, document)
VALUES ('org_a', 'ins_1', 1, 1, 'x', '{"a": 1}'), ('org_a', 'ins_1', 2, 1, 'x', '{"a": 1}');
INSERT INTO install_inputs (org_id, install_id, version, "values", sealed, at, "by")
VALUES ('org_a', 'ins_1', 1, '{"a": "b"}', '{}', 1, 'x');
INSERT INTO oci_blobs (org_id, digest, size, blob, created_at)
VALUES ('org_a', 'd', 11, 'k', 1), ('org_a', 'e', 22, 'l', 1);
INSERT INTO oci_uploads (org_id, id, repository, size, parts, started_at, changed_at)
VALUES ('org_a', 'u', 'r', 7, '[]', 1, 1)
"""


def _configure(connection: Connection) -> Config:
    return migrate._configure(connection)


def _add_org(connection: Connection, org: str, *, created_at: int) -> None:
    row = {"id": org, "name": org, "created_at": created_at}
    connection.execute(insert(_ORGS).values(row))
    connection.execute(insert(_ACCOUNTS).values({**row, "org_id": org, "id": "acc_1"}))


def _add_token(connection: Connection, org: str, token: str, grants: list[list[str]]) -> None:
    row = {"org_id": org, "id": token, "account_id": "acc_1", "name": token, "prefix": "xcl_"}
    row_rest = {"hash": token, "grants": grants, "created_at": 1, "expires_at": 2}
    connection.execute(insert(_TOKENS).values({**row, **row_rest}))
