"""Credentials that a runner holds for a registry that is not Exclave's own."""

from pathlib import Path

import pytest

from exclave.base.errors import InvalidInput
from exclave.base.secrets import Secret
from exclave.client.oci.client import Login
from exclave.runner.control_plane.registry_access import read_login


def test_without_credentials_nobody_logs_in() -> None:
    assert read_login("", None) is None


def test_the_password_is_read_from_its_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("s3cret\n")

    assert read_login("runner", file) == Login("runner", Secret("s3cret"))
    assert "s3cret" not in repr(read_login("runner", file))


@pytest.mark.parametrize(("username", "named"), [("", True), ("runner", False), ("runner", True)])
def test_half_a_login_is_refused_with_what_to_do(
    tmp_path: Path, username: str, named: bool
) -> None:
    file = tmp_path / "missing" if named else None

    with pytest.raises(InvalidInput) as caught:
        read_login(username, file)

    assert caught.value.advice
