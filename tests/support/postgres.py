"""A private PostgreSQL server for tests: can be crashed and restarted, with fast fresh databases."""

import atexit
import contextlib
import itertools
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
from psycopg import sql

from tests.support.postgres_programs import find_binaries, find_user, make_environment, wrap_argv

USER = "exclave"
START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 10.0
PORT_TRIES = 5
TEMPLATE = "template_for_tests"
_THROW_OUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_SCHEMA = """
SELECT table_name, string_agg(column_name || ' ' || data_type, ',' ORDER BY column_name)
FROM information_schema.columns
WHERE table_schema = 'public' AND table_name <> 'alembic_version' GROUP BY 1 ORDER BY 1
"""
"""Tables and columns of a schema, to see whether it was touched."""
_EMPTY = """
DO $$ DECLARE one text; BEGIN
  SET LOCAL session_replication_role = replica;
  FOR one IN SELECT tablename FROM pg_tables
             WHERE schemaname = 'public' AND tablename <> 'alembic_version' LOOP
    EXECUTE format('DELETE FROM %I', one);
  END LOOP;
END $$
"""


class PostgresServer:
    """One running server; `url` is its first database, `create_database` makes more."""

    def __init__(self, folder: Path, binaries: Path, *, durable: bool) -> None:
        self.folder = folder
        self.port = 0
        self._data = folder / "data"
        self._log = folder / "postgres.log"
        self._binaries = binaries
        self._durable = durable
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        self._idle: list[str] = []
        self._template: list[tuple[object, ...]] | None = None

    @property
    def url(self) -> str:
        """The URL of the database that always exists."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """Return the URL of a database for SQLAlchemy."""
        return f"postgresql+psycopg://{USER}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start, on the same port as before if there was one, and wait until it answers."""
        ports = [self.port] * PORT_TRIES if self.port else [0] * PORT_TRIES
        for port in ports:
            self.port = port or _find_port()
            self._process = self._launch()
            if self._wait_ready():
                return
        raise RuntimeError(f"PostgreSQL did not start:\n{self._log.read_text()[-2000:]}")

    def stop(self) -> None:
        """Shut down cleanly: clients are disconnected, everything is written."""
        self._end(signal.SIGINT)

    def kill9(self) -> None:
        """Kill all processes of the server at once, as in a crash."""
        process = self._process
        if process is None:
            return
        # Stopped first, or it would replace a child between the look and the kill.
        process.send_signal(signal.SIGSTOP)
        for child in _list_children(process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop in order if it runs, and start again on the same port; recovers after a crash."""
        self.stop()
        self.start()

    def create_database(self, name: str, *, template: str | None = None) -> str:
        """Create a database, optionally as a copy of an unused one, and return its URL."""
        command = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
        if template is not None:
            command += sql.SQL(" TEMPLATE {}").format(sql.Identifier(template))
        self._execute(command)
        return self.url_of(name)

    def drop_database(self, name: str) -> None:
        """Drop a database and disconnect its clients; a missing one is ignored."""
        command = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        self._execute(command.format(sql.Identifier(name)))

    def make_template(self, prepare: Callable[[str], object]) -> None:
        """Let `prepare(url)` build the schema once; `fresh_database` copies it from then on."""
        self._template = None
        self._idle.clear()
        self.drop_database(TEMPLATE)
        prepare(self.create_database(TEMPLATE))

    @contextlib.contextmanager
    def fresh_database(self) -> Iterator[str]:
        """Lend a copy of the template that nobody else uses; emptied, it is lent again.

        A new copy takes a quarter of a second, and a test each: that is minutes in all.
        """
        name = self._idle.pop() if self._idle else self._copy_template()
        try:
            yield self.url_of(name)
        finally:
            if self._process is not None:
                self._give_back(name)

    def _copy_template(self) -> str:
        name = f"test_{next(self._numbers)}"
        self.create_database(name, template=TEMPLATE)
        return name

    def _give_back(self, name: str) -> None:
        """Empty a database for the next test; one whose schema was touched is dropped."""
        try:
            with self._connect(name) as connection:
                connection.execute(_THROW_OUT)
                if _read_schema(connection) == self._read_template():
                    connection.execute(_EMPTY)
                    self._idle.append(name)
                    return
        except psycopg.Error:
            pass
        self.drop_database(name)

    def _read_template(self) -> list[tuple[object, ...]]:
        if self._template is None:
            with self._connect(TEMPLATE) as connection:
                self._template = _read_schema(connection)
        return self._template

    def _connect(self, name: str) -> psycopg.Connection[tuple[object, ...]]:
        address = f"postgresql://{USER}@127.0.0.1:{self.port}/{name}"
        return psycopg.connect(address, autocommit=True, options="-c lock_timeout=2s")

    def _execute(self, command: sql.Composed) -> None:
        with self._connect("postgres") as connection:
            connection.execute(command)

    def _launch(self) -> subprocess.Popen[bytes]:
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "max_connections": 200}
        settings |= {"unix_socket_directories": "", "shared_buffers": "64MB", "timezone": "UTC"}
        if not self._durable:
            settings |= {"fsync": "off", "full_page_writes": "off"}
        argv = [str(self._binaries / "postgres"), "-D", str(self._data)]
        argv += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                wrap_argv(argv),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=make_environment(),
                start_new_session=True,  # Ctrl-C in the terminal is for the tests
            )

    def _wait_ready(self) -> bool:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                time.sleep(0.1)  # a port just taken, or memory of a killed server still in use
                return False
            if self._says_ready():
                return True
            time.sleep(0.01)
        self.kill9()
        return False

    def _says_ready(self) -> bool:
        """Read the status line of the pid file, once it is the file of this very process."""
        with contextlib.suppress(OSError):
            lines = (self._data / "postmaster.pid").read_text().splitlines()
            mine = self._process is not None and lines[:1] == [str(self._process.pid)]
            return mine and len(lines) > 7 and lines[7].strip() == "ready"
        return False

    def _end(self, wish: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(wish)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


def start_postgres(folder: Path, *, durable: bool = True) -> PostgresServer:
    """Make a new cluster in the folder and start it; `durable=False` trades fsync for speed."""
    binaries = find_binaries()
    data = folder / "data"
    data.mkdir(parents=True)
    data.chmod(0o700)
    user = find_user()
    if user is not None:
        os.chown(data, user.pw_uid, user.pw_gid)
    argv = [str(binaries / "initdb"), "-D", str(data), "-U", USER, "-A", "trust", "-E", "UTF8"]
    argv += ["--locale=C", "--no-sync", "--no-instructions"]
    made = subprocess.run(
        wrap_argv(argv),
        capture_output=True,
        text=True,
        env=make_environment(),
        check=False,
    )
    if made.returncode:
        raise RuntimeError(f"initdb failed:\n{made.stdout}\n{made.stderr}")
    server = PostgresServer(folder, binaries, durable=durable)
    server.start()
    atexit.register(server.stop)
    return server


def _read_schema(
    connection: psycopg.Connection[tuple[object, ...]],
) -> list[tuple[object, ...]]:
    tables = connection.execute(_SCHEMA).fetchall()
    known = connection.execute("SELECT to_regclass('alembic_version') IS NOT NULL").fetchone()
    if known != (True,):
        return tables
    return tables + connection.execute("SELECT version_num, '' FROM alembic_version").fetchall()


def _find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _list_children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
        return [int(child) for child in text.split()]
    return []
