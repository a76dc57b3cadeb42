"""The control plane's signing keys: sealed in the database, chained, rotated."""

from dataclasses import dataclass

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from exclave.base.clock import Clock
from exclave.base.errors import Unavailable
from exclave.base.ids import Ids
from exclave.storage import keys as stored
from exclave.storage.engine.database import Tx
from exclave.wire.envelope import (
    encode_bytes,
    public_text,
    sign_detached,
    sign_dispatch,
    vouch_message,
)
from exclave.wire.runner import Dispatch, ServerKey

_LOOK_AGAIN_S = 5.0
"""For this long a key that another server has just replaced is still signed with."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    kid: str
    key: Ed25519PrivateKey


class Keyring:
    """Signs with the newest key of the chain; private keys are unsealed here and nowhere else."""

    def __init__(self, seal: bytes, ids: Ids, clock: Clock) -> None:
        self._fernet = Fernet(seal)
        self._ids = ids
        self._clock = clock
        self._newest: _Loaded | None = None
        self._looked_at = 0.0
        self._unsealed: dict[str, _Loaded] = {}

    def ensure_key(self, tx: Tx) -> None:
        """Create the first key of a new control plane."""
        stored.lock_chain(tx)
        if not stored.list_keys(tx):
            self.rotate(tx)

    def rotate(self, tx: Tx) -> str:
        """Append a key, signed by the one before it, and use it from now on; return its id."""
        stored.lock_chain(tx)
        chain = stored.list_keys(tx)
        key = Ed25519PrivateKey.from_private_bytes(self._ids.randomness.bits(256).to_bytes(32))
        kid = f"k{len(chain) + 1}-{public_text(key)[:8].lower().replace('_', 'x')}"
        voucher = self._unseal(chain[-1].kid, chain[-1].sealed) if chain else None
        message = vouch_message(kid, public_text(key))
        stored.add_key(
            tx,
            kid,
            public_key=public_text(key),
            sealed=self._fernet.encrypt(key.private_bytes_raw()).decode(),
            signed_by=voucher.kid if voucher else None,
            signature=encode_bytes(voucher.key.sign(message)) if voucher else None,
        )
        self._newest = None
        return kid

    def sign(self, tx: Tx, dispatches: list[Dispatch]) -> list[str]:
        """Return signed envelopes of dispatches."""
        now = self._clock.monotonic()
        if self._newest is None or now - self._looked_at > _LOOK_AGAIN_S:
            newest = stored.list_keys(tx)[-1]
            self._newest, self._looked_at = self._unseal(newest.kid, newest.sealed), now
        key, kid = self._newest.key, self._newest.kid
        return [sign_dispatch(key, kid, dispatch) for dispatch in dispatches]

    def sign_detached(self, tx: Tx, kind: str, payload: bytes) -> str:
        """Return the detached signature of a payload: a compact JWS without it."""
        newest = stored.list_keys(tx)[-1]
        return sign_detached(self._unseal(newest.kid, newest.sealed).key, newest.kid, kind, payload)

    def list_public(self, tx: Tx) -> list[ServerKey]:
        """Return the chain of public keys, oldest first."""
        return [
            ServerKey(
                kid=row.kid,
                public_key=row.public_key,
                signed_by=row.signed_by,
                signature=row.signature,
            )
            for row in stored.list_keys(tx)
        ]

    def _unseal(self, kid: str, sealed: str) -> _Loaded:
        if kid not in self._unsealed:
            try:
                raw = self._fernet.decrypt(sealed.encode())
            except InvalidToken as error:
                raise Unavailable(
                    "the signing key cannot be unsealed",
                    hint="Start the server with the seal key that this database was made with.",
                ) from error
            self._unsealed[kid] = _Loaded(kid, Ed25519PrivateKey.from_private_bytes(raw))
        return self._unsealed[kid]
