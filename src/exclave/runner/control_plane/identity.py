"""The runner's identity: its Ed25519 key, its one-time enrolment, and the identity file."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from exclave import __version__
from exclave.base.errors import Kind, Problem
from exclave.base.ids import Randomness
from exclave.client.runner import RunnerApi
from exclave.runner.data_folder import DataFolder, write_durably
from exclave.wire.envelope import extend_trust, public_text
from exclave.wire.jobs import JobKind
from exclave.wire.model import Id, Reply
from exclave.wire.runner import PROTOCOL, Enrol, Enrolled, Nonce, QueueKind, RunnerTimings

IDENTITY = "identity.json"
KEY = "identity.key"


class NotEnrolled(Problem):
    """The data folder holds no identity yet."""

    kind: ClassVar = Kind.UNAUTHENTICATED
    code: ClassVar = "not_enrolled"
    hint: ClassVar = "Ask for an enrolment token and give it to this runner once."


class AlreadyEnrolled(Problem):
    """The data folder already belongs to a runner."""

    kind: ClassVar = Kind.CONFLICT
    code: ClassVar = "already_enrolled"
    hint: ClassVar = "Start the runner without an enrolment token, or use another data folder."


class StrangeKeys(Problem):
    """The server at the control plane's address has other keys than expected."""

    kind: ClassVar = Kind.FORBIDDEN
    code: ClassVar = "strange_keys"
    hint: ClassVar = (
        "Do not continue. Ask the vendor for a new Stack over a channel that you trust."
    )


class Identity(Reply):
    """What the control plane issued at enrolment, and the progress of the token exchange.

    `pending_nonce` is stored before it is used to request a token: until that request is answered,
    no other nonce may be used, or a late copy of the request would look like a copied key.
    """

    runner_id: Id
    org_id: Id
    queue_id: Id
    kind: QueueKind
    generation: int
    timings: RunnerTimings
    keys: dict[str, str]
    pending_nonce: Nonce | None = None


def load_identity(folder: Path) -> Identity:
    """Return the identity; raise a clear problem if the file is missing or unreadable."""
    file = folder / IDENTITY
    if not file.exists():
        message = f"`{folder}` holds no identity"
        raise NotEnrolled(message)
    try:
        return Identity.model_validate_json(file.read_bytes())
    except (OSError, ValueError) as error:
        message = f"`{file}` cannot be read"
        raise NotEnrolled(message, hint="Restore the file, or enrol this runner again.") from error


def save_identity(disk: DataFolder, identity: Identity) -> None:
    """Store the identity durably."""
    disk.write(disk.path / IDENTITY, identity.model_dump_json().encode())


def load_key(folder: Path) -> Ed25519PrivateKey:
    """Return the private key, which never leaves this machine."""
    file = folder / KEY
    try:
        return Ed25519PrivateKey.from_private_bytes(file.read_bytes())
    except (OSError, ValueError) as error:
        message = f"the key `{file}` cannot be read"
        raise NotEnrolled(message, hint="Restore the file, or enrol this runner again.") from error


def make_key(folder: Path, randomness: Randomness) -> Ed25519PrivateKey:
    """Create the key once; a second attempt to enrol after a lost reply must use the same key."""
    file = folder / KEY
    if not file.exists():
        write_durably(file, randomness.bits(256).to_bytes(32, "big"))
    os.chmod(file, 0o600)  # noqa: PTH101 - says exactly what is meant
    return load_key(folder)


async def enrol(
    disk: DataFolder,
    api: RunnerApi,
    *,
    token: str,
    name: str,
    capabilities: tuple[JobKind, ...],
    randomness: Randomness,
    pinned: Mapping[str, str] | None = None,
) -> Identity:
    """Enrol with the one-time token, pin the control plane's keys and store the identity.

    If the keys are known beforehand, they are passed as `pinned`: then only these keys, and keys
    that they vouch for, are accepted.
    """
    refuse_second(disk)
    key = make_key(disk.path, randomness)
    request = Enrol(
        token=token,
        public_key=public_text(key),
        name=name,
        version=__version__,
        protocol=PROTOCOL,
        capabilities=list(capabilities),
    )
    return keep_enrolled(disk, await api.enrol(request), pinned)


def refuse_second(disk: DataFolder) -> None:
    """Raise if the data folder holds an identity already."""
    if (disk.path / IDENTITY).exists():
        message = f"`{disk.path}` already holds the identity of a runner"
        raise AlreadyEnrolled(message)


def keep_enrolled(
    disk: DataFolder, enrolled: Enrolled, pinned: Mapping[str, str] | None
) -> Identity:
    """Store a new identity, if the control plane has the expected keys."""
    identity = _build_identity(enrolled, _choose_keys(enrolled, pinned))
    save_identity(disk, identity)
    return identity


def _choose_keys(enrolled: Enrolled, pinned: Mapping[str, str] | None) -> dict[str, str]:
    offered = {key.kid: key.public_key for key in enrolled.keys}
    if pinned is None:
        return offered
    if any(offered.get(kid) != key for kid, key in pinned.items()):
        raise StrangeKeys("the control plane signs with other keys than this runner was given")
    return extend_trust(pinned, enrolled.keys)


def _build_identity(enrolled: Enrolled, keys: dict[str, str]) -> Identity:
    return Identity(
        runner_id=enrolled.runner_id,
        org_id=enrolled.org_id,
        queue_id=enrolled.queue_id,
        kind=enrolled.kind,
        generation=enrolled.generation,
        timings=enrolled.timings,
        keys=keys,
    )
