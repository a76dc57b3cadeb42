"""Credentials for git and ssh: handed over in the environment and in files of the job."""

import shlex

from exclave.runner.git.urls import Address
from exclave.runner.jobs.workspace import Workspace
from exclave.runner.outcomes import WorkFailed
from exclave.runner.secrets.source_credentials import Credential
from exclave.wire.jobs import Reason

_SSH_PORT = 22
_EXECUTABLE = 0o700
_ASKPASS = """#!/bin/sh
case "$1" in
Username*) printf '%s\\n' "$EXCLAVE_GIT_USERNAME" ;;
*) printf '%s\\n' "$EXCLAVE_GIT_PASSWORD" ;;
esac
"""
"""The script that git calls for a password; it prints a value of its environment."""


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
