"""Secrets that the runner holds: they are read here, in the customer's account, and stay here."""

import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn, Protocol

from exclave.base.secrets import Secret
from exclave.runner.work import WorkFailed
from exclave.wire.jobs import Reason

_OTHERS = 0o077


class SecretStore(Protocol):
    """Where secrets come from."""

    async def fetch(self, names: Iterable[str]) -> dict[str, Secret]:
        """Read all of these secrets; one that is missing fails the work, never becomes empty."""
        ...


class FileSecrets:
    """Secrets in a JSON file, name to value, that nobody but the runner's user may read."""

    def __init__(self, file: Path | None) -> None:
        self._file = file

    async def fetch(self, names: Iterable[str]) -> dict[str, Secret]:
        """Read all of these secrets."""
        wanted = sorted(set(names))
        if not wanted:
            return {}
        held = self._read()
        missing = [f"`{name}`" for name in wanted if name not in held]
        if missing:
            _refuse(f"the runner has no secret {', '.join(missing)}: add it to `{self._file}`")
        return {name: held[name] for name in wanted}

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
        if not isinstance(held, dict) or not all(isinstance(one, str) for one in held.values()):
            _refuse(f"the secrets file `{self._file}` is not one JSON object of texts")
        return {name: Secret(value) for name, value in held.items()}


def _refuse(message: str) -> NoReturn:
    raise WorkFailed(Reason.SECRET_MISSING, message)
