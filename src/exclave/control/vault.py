"""The vault: sensitive values are sealed before they are stored, with the server's seal key."""

import hmac

from cryptography.fernet import Fernet, InvalidToken

from exclave.base.errors import Unavailable


class Vault:
    """Seals and unseals texts, which nobody can read who only has the database."""

    def __init__(self, seal: bytes) -> None:
        self._fernet = Fernet(seal)
        self._seal = seal

    def seal(self, text: str) -> str:
        """Return a sealed text; sealing the same text twice gives different results."""
        return self._fernet.encrypt(text.encode()).decode()

    def sign(self, purpose: str, data: bytes) -> str:
        """Return a keyed digest in hex: nobody without the seal key can make or guess it.

        Each purpose has a key of its own, which all servers with the same seal key share.
        """
        key = hmac.digest(self._seal, f"exclave {purpose}".encode(), "sha256")
        return hmac.digest(key, data, "sha256").hex()

    def is_same(self, digest: str, other: str) -> bool:
        """Compare two keyed digests in constant time."""
        return hmac.compare_digest(digest.encode(), other.encode())

    def unseal(self, sealed: str) -> str:
        """Return the plain text of a sealed one."""
        try:
            return self._fernet.decrypt(sealed.encode()).decode()
        except InvalidToken as error:
            raise Unavailable(
                "a sealed value cannot be read",
                hint="Start the server with the seal key that this database was made with.",
            ) from error
