"""What `exclave dev` refuses before it starts anything."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from exclave.base.errors import InvalidInput
from exclave.main.commands.dev import dev


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--registry", "ftp://registry.example.com"], "not the address of a registry"),
        (["--secret-file", "registry_username=none"], "does not name a file"),
        (["--secret-file", "db=value"], "only the login of a registry"),
        (["--kubeconfig", "none"], "there is no file"),
    ],
)
def test_options_for_stacks_are_checked_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "value").write_text("secret")

    ran = CliRunner().invoke(dev, words)

    assert isinstance(ran.exception, InvalidInput)
    assert told in ran.exception.message
    assert not (tmp_path / ".exclave").exists()
