"""The seal key of a machine in a cloud: made of a secret of the Stack, it outlives disks."""

import string
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from exclave.base.ids import Randomness
from exclave.base.secrets import Secret
from exclave.runner.cloud.accounts import CloudAccount
from exclave.runner.cloud.exchange import CloudRefused
from exclave.runner.data_folder import write_durably
from exclave.runner.secrets.sealing import SEAL_KEY

_INFO: Final = "exclave-seal-v1\n"
_BYTES: Final = 32
_LETTERS: Final = string.ascii_letters + string.digits
_DRAWN: Final = 64


def derive_seal_key(secret: Secret, install: str) -> bytes:
    """Return the key that a secret of the Stack stands for."""
    info = f"{_INFO}{install}".encode()
    kdf = HKDF(algorithm=SHA256(), length=_BYTES, salt=None, info=info)
    return kdf.derive(secret.reveal().encode())


async def prepare_seal_key(
    account: CloudAccount,
    reference: str,
    install: str,
    data: Path,
    randomness: Randomness,
    *,
    is_writable: bool,
) -> None:
    """Write the seal key of the Stack into the data folder, before older ones that are there.

    Where the Stack does not generate the secret, the runner does so once. The oldest value counts,
    so that two machines which start at the same time agree.
    """
    secret = await account.read_oldest(reference)
    if secret is None and is_writable:
        await account.write_secret(reference, _draw(randomness))
        secret = await account.read_oldest(reference)
    if secret is None:
        raise CloudRefused(f"the seal of the Stack, `{reference}`, has no value")
    key = derive_seal_key(secret, install).hex()
    file = data / SEAL_KEY
    known = file.read_text().split() if file.exists() else []
    if known[:1] != [key]:
        lines = [key, *(line for line in known if line != key)]
        write_durably(file, "".join(f"{line}\n" for line in lines).encode())


def _draw(randomness: Randomness) -> Secret:
    drawn: list[str] = []
    while len(drawn) < _DRAWN:
        number = randomness.bits(6)
        if number < len(_LETTERS):
            drawn.append(_LETTERS[number])
    return Secret("".join(drawn))
