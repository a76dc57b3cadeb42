import pytest

from exclave import __version__
from exclave.cli.root import NOUNS, LazyCommand, build_root, run
from tests.support.imports import list_imported
from tests.unit.cli.fake_control import Cli

HEAVY = ("pydantic", "httpx", "rich", "fastapi", "sqlalchemy", "cryptography", "asyncio")


@pytest.mark.parametrize("argv", [["--version"], ["--help"], [], ["wrong"]])
def test_a_start_without_a_noun_loads_no_heavy_module(argv: list[str]) -> None:
    code = f"from exclave.cli.root import build_root, run\nrun(build_root(), {argv!r}, {{}})\n"

    assert list_imported(code, HEAVY) == []


def test_the_version_is_told(cli: Cli) -> None:
    ran = cli("--version")

    assert (ran.code, ran.out) == (0, f"exclave {__version__}\n")


def test_the_help_lists_all_nouns_and_what_main_adds(capsys: pytest.CaptureFixture[str]) -> None:
    root = build_root({"server": LazyCommand("not.imported", "group", "The control plane.")})

    code = run(root, ["--help"], {})

    out = capsys.readouterr().out
    assert code == 0
    assert all(f"  {noun} " in out for noun in NOUNS)
    assert "server     The control plane." in out


@pytest.mark.parametrize("noun", NOUNS)
def test_the_short_help_of_a_noun_is_that_of_its_group(noun: str, cli: Cli) -> None:
    ran = cli(noun, "--help")

    assert ran.code == 0
    assert NOUNS[noun].help in ran.out


def test_no_arguments_show_the_help_on_stderr(cli: Cli) -> None:
    ran = cli()

    assert (ran.code, ran.out) == (2, "")
    assert "Usage: exclave" in ran.err
