"""Stores of the customer's secrets, which never leave the customer's account."""

import fcntl
import json
import os
import stat
import string
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn, Protocol

from exclave.base.ids import Randomness
from exclave.base.secrets import Secret
from exclave.runner.data_folder import write_durably
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

_OTHERS = 0o077
_LETTERS = string.ascii_letters + string.digits
_GENERATED_CHARS = 63


class SecretStore(Protocol):
    """A store of secrets: a file, or the secret store of a cloud."""

    async def fetch(self, names: Iterable[str]) -> dict[str, Secret]:
        """Return these secrets; raise if one is missing."""
        ...

    async def list_names(self) -> frozenset[str]:
        """Return the names of the stored secrets."""
        ...

    async def put(self, name: str, value: Secret) -> None:
        """Store a secret, replacing an older value."""
        ...

    async def put_missing(self, name: str, value: Secret) -> bool:
        """Store a secret unless one of that name exists; return whether it was stored."""
        ...


class FileSecrets:
    """Secrets in a JSON file, name to value, readable by the runner's user only."""

    def __init__(self, file: Path | None, advise: Callable[[str], str] | None = None) -> None:
        self._file = file
        self._advise = advise or (lambda _: f"add it to `{file}`")

    async def fetch(self, names: Iterable[str]) -> dict[str, Secret]:
        """Return these secrets."""
        wanted = sorted(set(names))
        if not wanted:
            return {}
        held = self._read()
        missing = [name for name in wanted if name not in held]
        if missing:
            listed = ", ".join(f"`{name}`" for name in missing)
            _refuse(f"the runner has no secret {listed}: {self._advise(missing[0])}")
        return {name: held[name] for name in wanted}

    async def list_names(self) -> frozenset[str]:
        """Return the names of the stored secrets; a missing file holds none."""
        if self._file is None or not self._file.exists():
            return frozenset()
        return frozenset(self._read())

    async def put(self, name: str, value: Secret) -> None:
        """Store a secret, replacing an older value."""
        with self._changing() as held:
            held[name] = value

    async def put_missing(self, name: str, value: Secret) -> bool:
        """Store a secret unless one of that name exists."""
        with self._changing() as held:
            known = name in held
            held.setdefault(name, value)
        return not known

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Secret]]:
        """Lock the file and yield its content, which is written back at the end."""
        if self._file is None:
            _refuse("the runner has no secrets file: name one in its settings")
        lock = os.open(
            self._file.with_name(f".{self._file.name}.lock"),
            os.O_RDWR | os.O_CREAT | os.O_CLOEXEC,
            0o600,
        )
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            held = self._read() if self._file.exists() else {}
            yield held
            values = {name: value.reveal() for name, value in sorted(held.items())}
            write_durably(self._file, json.dumps(values, ensure_ascii=False).encode())
        finally:
            os.close(lock)

    def _read(self) -> dict[str, Secret]:
        if self._file is None:
            _refuse("the runner has no secrets file: name one in its settings")
        try:
            handle = os.open(self._file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            _refuse(f"the secrets file `{self._file}` cannot be read: {error.strerror}")
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode) or facts.st_mode & _OTHERS:
            os.close(handle)
            _refuse(f"others may read the secrets file: run `chmod 600 {self._file}`")
        with os.fdopen(handle, "rb") as opened:
            return self._parse(opened.read())

    def _parse(self, data: bytes) -> dict[str, Secret]:
        try:
            held = json.loads(data)
        except (ValueError, RecursionError):
            held = None
        if not isinstance(held, dict) or not all(isinstance(value, str) for value in held.values()):
            _refuse(f"the secrets file `{self._file}` is not one JSON object of texts")
        return {name: Secret(value) for name, value in held.items()}


def generate_secret(randomness: Randomness) -> Secret:
    """Generate a secret of letters and digits."""
    drawn: list[str] = []
    while len(drawn) < _GENERATED_CHARS:
        number = randomness.bits(6)
        if number < len(_LETTERS):
            drawn.append(_LETTERS[number])
    return Secret("".join(drawn))


def _refuse(message: str) -> NoReturn:
    raise WorkFailed(Reason.SECRET_MISSING, message)
