"""What the boot script left on a machine in a cloud: which install it is for, and where."""

from pathlib import Path
from typing import ClassVar

from exclave.base.errors import Kind, Problem
from exclave.base.json_values import parse_object
from exclave.wire.attest import AttestingCloud
from exclave.wire.model import Id, Reply
from exclave.wire.runner import ServerKey, Token


class BootFileBroken(Problem):
    """The file that the boot script writes is missing or not what it should be."""

    kind: ClassVar = Kind.INVALID
    code: ClassVar = "boot_file_broken"
    hint: ClassVar = "Replace the machine: its boot script writes the file anew."


class Boot(Reply):
    """The facts of a machine's boot script. None of them changes as long as the machine lives."""

    install: Id
    cloud: AttestingCloud
    runner_url: str
    keys: list[ServerKey]
    """The control plane's signing keys that the Stack pinned."""
    document: str = ""
    """Where the Stack's document is in the cloud's store of secrets."""
    region: str = ""
    domain: str = ""
    """AWS: the domain of the region's services; empty for the usual one."""
    identity: str = ""
    """Azure: the client id of the machine's identity, if it has several."""
    code: Token | None = None
    """The one-time code, if the Stack's account was not known when it was made."""


def read_boot(file: Path) -> Boot:
    """Return the facts of this machine's boot script; an empty one is none."""
    try:
        facts = parse_object(file.read_bytes(), "the file")
        return Boot.model_validate({name: value for name, value in facts.items() if value != ""})
    except (OSError, ValueError) as error:
        message = f"`{file}` cannot be read: {type(error).__name__}"
        raise BootFileBroken(message) from error
