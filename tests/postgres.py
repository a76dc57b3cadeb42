"""A private PostgreSQL server for tests: started in a folder, killed like a crash, fast fresh databases."""

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

from tests.postgres_programs import find_binaries, find_user, make_environment, wrap_argv

USER = "exclave"
START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 10.0
PORT_TRIES = 5
TEMPLATE = "template_for_tests"


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

    @property
    def url(self) -> str:
        """The address of the database that always exists."""
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """Write the address of a database for SQLAlchemy."""
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
        """Shut down in order: clients are thrown out, everything is written."""
        self._end(signal.SIGINT)

    def kill9(self) -> None:
        """Crash: no process of the server gets to do anything more."""
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
        """Make a database, maybe as a copy of another that nobody is connected to; tell its url."""
        command = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name))
        if template is not None:
            command += sql.SQL(" TEMPLATE {}").format(sql.Identifier(template))
        self._execute(command)
        return self.url_of(name)

    def drop_database(self, name: str) -> None:
        """Remove a database and throw its clients out; a missing one is fine."""
        command = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        self._execute(command.format(sql.Identifier(name)))

    def make_template(self, prepare: Callable[[str], object]) -> None:
        """Let `prepare(url)` build the schema once; `fresh_database` copies it from then on."""
        self.drop_database(TEMPLATE)
        prepare(self.create_database(TEMPLATE))

    @contextlib.contextmanager
    def fresh_database(self) -> Iterator[str]:
        """Lend a copy of the template that nobody else uses."""
        name = f"test_{next(self._numbers)}"
        try:
            yield self.create_database(name, template=TEMPLATE)
        finally:
            if self._process is not None:
                self.drop_database(name)

    def _execute(self, command: sql.Composed) -> None:
        address = f"postgresql://{USER}@127.0.0.1:{self.port}/postgres"
        with psycopg.connect(address, autocommit=True) as connection:
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


def _find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _list_children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
        return [int(child) for child in text.split()]
    return []
