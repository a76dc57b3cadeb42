"""Credentials of connected repositories, which are kept in a file of the build runner only."""

import json
import os
import shlex
import stat
from pathlib import Path
from typing import Annotated, NoReturn

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from exclave.base.secrets import Secret
from exclave.runner.git.urls import Address
from exclave.runner.jobs.workspace import Workspace
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

FILE = "git-credentials.json"
"""The name of the file in the build runner's data folder."""

_SSH_PORT = 22
_OTHERS = 0o077
_EXECUTABLE = 0o700
_ASKPASS = """#!/bin/sh
case "$1" in
Username*) printf '%s\\n' "$EXCLAVE_GIT_USERNAME" ;;
*) printf '%s\\n' "$EXCLAVE_GIT_PASSWORD" ;;
esac
"""
"""The script that git calls for a password; it prints a value of its environment."""

_Value = Annotated[str, StringConstraints(min_length=1, max_length=32_768, pattern=r"^[^\x00]*$")]


class Credential(BaseModel):
    """The credential for repositories whose URLs begin with `prefix`: a password or an SSH key."""

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


class GitCredentials:
    """The credentials file, read for each build, so that changes take effect at once."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def find(self, address: Address) -> Credential:
        """Return the credential with the longest matching prefix, or None."""
        fitting = [credential for credential in self._read() if credential.opens(address.text)]
        if not fitting:
            message = (
                f"the build runner has no credentials for `{address.text}`: add them to"
                f" `{self._file}`"
            )
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


def hand_over(
    credential: Credential | None, address: Address, ip: str | None, workspace: Workspace
) -> dict[str, str]:
    """Return the variables that pass a credential to git; no secret is in argv or the URL."""
    if address.protocol == "ssh":
        return {"GIT_SSH_COMMAND": _write_ssh(credential, address, ip, workspace)}
    if credential is None or credential.password is None:
        return {"GIT_ASKPASS": "false"}
    script = workspace.folder / "askpass"
    workspace.write(script, _ASKPASS.encode(), mode=_EXECUTABLE)
    return {
        "GIT_ASKPASS": str(script),
        "EXCLAVE_GIT_USERNAME": credential.username,
        "EXCLAVE_GIT_PASSWORD": credential.password,
    }


def _write_ssh(
    credential: Credential | None, address: Address, ip: str | None, workspace: Workspace
) -> str:
    """Return the ssh command: with our key, known hosts and address, and no configuration file."""
    if credential is None or credential.private_key is None:
        message = (
            f"`{address.text}` needs an SSH key: make it a `connected_repo`, and give the build"
            " runner a `private_key` and `known_hosts` for it"
        )
        raise WorkFailed(Reason.SECRET_MISSING, message)
    key, hosts = workspace.folder / "ssh-key", workspace.folder / "known-hosts"
    workspace.write(key, credential.private_key.rstrip("\n").encode() + b"\n")
    workspace.write(hosts, (credential.known_hosts or "").encode())
    options = {
        "IdentityFile": str(key),
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": str(hosts),
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "BatchMode": "yes",
        "ConnectTimeout": "30",
        "HostKeyAlias": _name_host(address),
    }
    if ip is not None:
        options["HostName"] = ip
    argv = ["ssh", "-F", "/dev/null"]
    argv += [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    return shlex.join(argv)


def _name_host(address: Address) -> str:
    """Return the host as `known_hosts` spells it, with a port other than 22."""
    is_usual = address.port == _SSH_PORT
    return address.host if is_usual else f"[{address.host}]:{address.port}"


def forget(workspace: Workspace) -> None:
    """Remove the files that were written for git and ssh."""
    with workspace.touch():
        for name in ("askpass", "ssh-key", "known-hosts"):
            (workspace.folder / name).unlink(missing_ok=True)
