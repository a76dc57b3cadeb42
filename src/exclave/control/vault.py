"""The vault: sensitive values are sealed before they are stored, with the server's seal key."""

from cryptography.fernet import Fernet, InvalidToken

from exclave.base.errors import Unavailable


class Vault:
    """Seals and unseals texts; whoever holds only the database can read none of them."""

    def __init__(self, seal: bytes) -> None:
        self._fernet = Fernet(seal)

    def seal(self, text: str) -> str:
        """Seal a text; the same text never looks the same twice."""
        return self._fernet.encrypt(text.encode()).decode()

    def unseal(self, sealed: str) -> str:
        """Read a sealed text."""
        try:
            return self._fernet.decrypt(sealed.encode()).decode()
        except InvalidToken as error:
            raise Unavailable(
                "a sealed value cannot be read",
                hint="Start the server with the seal key that this database was made with.",
            ) from error
