"""Encrypts Terraform states and plans with a key that stays on the customer's side."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import zstandard
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from exclave.base.errors import Problem
from exclave.base.ids import Randomness
from exclave.runner.data_folder import write_durably
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

SEAL_KEY = "seal.key"
"""The key file in the runner's data folder. Without it no state can be read again: back it up."""

_PLAIN = b"exclave-sealed-1\n"
_PACKED = b"exclave-sealed-2\n"
"""Magic bytes of compressed content, which older runners cannot open."""
_PACK_ABOVE = 64 * 1024
"""Smaller content is not compressed: little is gained, and older runners can still open it."""
_LEVEL = 3
_MOST_UNPACKED = 512 << 20
_KEY_BYTES = 32
_ID_BYTES = 8
_NONCE_BYTES = 12
_OTHERS = 0o077


class SealBroken(Problem):
    """Encrypted bytes that this runner cannot open: another key, another purpose, or modified."""

    code = "seal_broken"
    hint = "Put back the runner's `seal.key`; sealed bytes cannot be moved between workspaces."


@dataclass(frozen=True, slots=True)
class Purpose:
    """The purpose of encrypted bytes; they can be opened for this purpose only."""

    org_id: str
    queue_id: str
    workspace: str
    kind: str

    def as_associated_data(self) -> bytes:
        """Return the purpose as associated data of the encryption."""
        return f"{self.org_id}\n{self.queue_id}\n{self.workspace}\n{self.kind}".encode()


class Sealer:
    """Encrypts with the first key of the file, decrypts with any; creates the file if needed."""

    def __init__(self, data: Path, randomness: Randomness) -> None:
        self._file = data / SEAL_KEY
        self._randomness = randomness
        self._keys: dict[bytes, AESGCM] = {}

    def seal(self, data: bytes, purpose: Purpose) -> bytes:
        """Return encrypted bytes: magic, key id, nonce, ciphertext. Large content is compressed.

        The size of compressed bytes reveals something about them, but only to the vendor, whose
        module produced them and could reveal as much.
        """
        name, key = next(iter(self._load().items()))
        nonce = self._randomness.bits(8 * _NONCE_BYTES).to_bytes(_NONCE_BYTES, "big")
        magic, body = _pack(data)
        return magic + name + nonce + key.encrypt(nonce, body, _bind(magic, purpose))

    def unseal(self, sealed: bytes, purpose: Purpose) -> bytes:
        """Return the decrypted bytes; raise unless they were sealed for this purpose."""
        magic, body = sealed[: len(_PLAIN)], sealed[len(_PLAIN) :]
        name, nonce = body[:_ID_BYTES], body[_ID_BYTES : _ID_BYTES + _NONCE_BYTES]
        key = self._load().get(name)
        if magic not in {_PLAIN, _PACKED} or key is None:
            raise SealBroken("the bytes were not sealed with this runner's key")
        try:
            data = key.decrypt(nonce, body[_ID_BYTES + _NONCE_BYTES :], _bind(magic, purpose))
            return _unpack(data) if magic == _PACKED else data
        except (InvalidTag, ValueError, zstandard.ZstdError) as error:
            message = f"the {purpose.kind} of `{purpose.workspace}` was changed or swapped"
            raise SealBroken(message) from error

    def _load(self) -> dict[bytes, AESGCM]:
        if not self._keys:
            self._keys = _read_keys(self._file, self._randomness)
        return self._keys


def _pack(data: bytes) -> tuple[bytes, bytes]:
    if len(data) > _PACK_ABOVE:
        packed = zstandard.ZstdCompressor(level=_LEVEL).compress(data)
        if len(packed) < len(data):
            return _PACKED, packed
    return _PLAIN, data


def _unpack(data: bytes) -> bytes:
    with zstandard.ZstdDecompressor().stream_reader(data) as reader:
        unpacked = reader.read(_MOST_UNPACKED + 1)
    if len(unpacked) > _MOST_UNPACKED:
        message = f"more than {_MOST_UNPACKED} bytes"
        raise ValueError(message)
    return unpacked


def _bind(magic: bytes, purpose: Purpose) -> bytes:
    """Return the associated data: the purpose, and whether the bytes are compressed."""
    data = purpose.as_associated_data()
    return data if magic == _PLAIN else data + b"\nzstd"


def _read_keys(file: Path, randomness: Randomness) -> dict[bytes, AESGCM]:
    try:
        if not file.exists():
            fresh = randomness.bits(8 * _KEY_BYTES).to_bytes(_KEY_BYTES, "big")
            write_durably(file, fresh.hex().encode() + b"\n")
        if file.stat().st_mode & _OTHERS:
            raise _refuse(f"others may read the seal key: run `chmod 600 {file}`")
        lines = file.read_text().split()
        keys = [bytes.fromhex(line) for line in lines]
    except OSError as error:
        raise _refuse(
            f"the seal key `{file}` cannot be used: {os.strerror(error.errno or 0)}"
        ) from error
    except ValueError:
        keys = []
    if not keys or any(len(key) != _KEY_BYTES for key in keys):
        raise _refuse(f"the seal key `{file}` is damaged: put back its backup")
    return {hashlib.sha256(key).digest()[:_ID_BYTES]: AESGCM(key) for key in keys}


def _refuse(message: str) -> WorkFailed:
    return WorkFailed(Reason.RUNNER_ERROR, message)
