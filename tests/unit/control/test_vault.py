"""The vault seals with the server's key and nothing else opens what it sealed."""

import pytest
from cryptography.fernet import Fernet

from exclave.base.errors import Unavailable
from exclave.control.vault import Vault


@pytest.mark.parametrize("text", ["", "hunter2", "žluťoučký\nkůň", "x" * 100_000])
def test_what_is_sealed_is_unreadable_and_comes_back(text: str) -> None:
    vault = Vault(Fernet.generate_key())

    sealed = vault.seal(text)

    assert vault.unseal(sealed) == text
    assert not text or text not in sealed
    assert sealed != vault.seal(text)


SEALED = Vault(Fernet.generate_key()).seal("mine")


@pytest.mark.parametrize("sealed", ["", "rubbish", SEALED], ids=["empty", "rubbish", "foreign"])
def test_what_another_key_sealed_is_a_clear_problem(sealed: str) -> None:
    with pytest.raises(Unavailable, match="cannot be read"):
        Vault(Fernet.generate_key()).unseal(sealed)


def test_keyed_digests_depend_on_the_seal_key_and_on_their_purpose() -> None:
    seal = Fernet.generate_key()
    vault = Vault(seal)

    signed = vault.sign("a", b"1234")

    assert signed == Vault(seal).sign("a", b"1234")
    assert (
        len({signed, vault.sign("b", b"1234"), Vault(Fernet.generate_key()).sign("a", b"1234")})
        == 3
    )
    assert vault.is_same(signed, signed)
    assert not vault.is_same(signed, signed[:-1])
