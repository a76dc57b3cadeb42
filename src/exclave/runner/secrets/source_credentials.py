"""Credentials of the sources that builds read: git repositories, charts, images."""

import json
import os
import stat
from pathlib import Path
from typing import Annotated, NoReturn

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from exclave.base.secrets import Secret
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

FILE = "source-credentials.json"
"""The name of the file in the build runner's data folder, which is the only place that has it."""

_OTHERS = 0o077

_Value = Annotated[str, StringConstraints(min_length=1, max_length=32_768, pattern=r"^[^\x00]*$")]


class Credential(BaseModel):
    """What opens sources whose addresses begin with `prefix`: a password or an SSH key."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    prefix: _Value
    username: _Value = "git"
    password: _Value | None = None
    private_key: _Value | None = None
    known_hosts: _Value | None = None

    def opens(self, url: str) -> bool:
        """Return whether an address is below the prefix, compared by whole path segments."""
        if self.prefix.endswith(("/", ":")):
            return url.startswith(self.prefix)
        return url == self.prefix or url.startswith((f"{self.prefix}/", f"{self.prefix}.git"))


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    credentials: Annotated[list[Credential], Field(max_length=1000)]


class SourceCredentials:
    """The credentials file, read for each build, so that changes take effect at once."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def find(self, url: str) -> Credential:
        """Return the credential with the longest matching prefix; raise if there is none."""
        fitting = [credential for credential in self._read() if credential.opens(url)]
        if not fitting:
            message = f"the build runner has no credentials for `{url}`: add them to `{self._file}`"
            raise WorkFailed(Reason.SECRET_MISSING, message)
        return max(fitting, key=lambda credential: len(credential.prefix))

    def find_password(self, url: str) -> Credential | None:
        """Return the credential with a password for an address that need not have one, or None."""
        fitting = [
            credential
            for credential in self._read()
            if credential.password is not None and credential.opens(url)
        ]
        return max(fitting, key=lambda credential: len(credential.prefix), default=None)

    def _read(self) -> list[Credential]:
        try:
            handle = os.open(self._file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return []
        except OSError as error:
            self._refuse(f"cannot be read: {error.strerror}")
        facts = os.fstat(handle)
        with os.fdopen(handle, "rb") as opened:
            if not stat.S_ISREG(facts.st_mode) or facts.st_mode & _OTHERS:
                self._refuse(f"may be read by others: run `chmod 600 {self._file}`")
            data = opened.read()
        try:
            return _File.model_validate(json.loads(data)).credentials
        except (ValidationError, ValueError, RecursionError):
            # The invalid value may be a secret, so it is not shown.
            self._refuse('is not of the form {"credentials": [{"prefix": "https://…", …}]}')

    def _refuse(self, why: str) -> NoReturn:
        message = f"the credentials file `{self._file}` {why}"
        raise WorkFailed(Reason.SECRET_MISSING, message)


def list_secrets(credential: Credential) -> list[Secret]:
    """Return the secrets of a credential, to be masked."""
    values = (credential.password, credential.private_key)
    return [Secret(value) for value in values if value is not None]
