"""What a customer sees of a Stack that does not run: its help, what it misses."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from exclave.main.commands.stack import group
from exclave.runner.stack.folder import StackFolder
from exclave.wire.stacks import StackDocument, StackInput, StackSecret, StackTerms

TERMS = StackTerms(
    install_id="ins_" + "0" * 26, install="acme", app="shop",
    secrets=[StackSecret(name="db", required=True, description="For the database.")],
    inputs=[
        StackInput(name="zone", required=True, description="Where."),
        StackInput(name="pin", required=True, sensitive=True),
        StackInput(name="size", default="3"),
        StackInput(name="note"),
    ],
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> StackFolder:
    made = StackFolder(tmp_path / "stack")
    made.prepare()
    made.write_document(
        StackDocument(terms=TERMS, runner_url="http://r.test", keys=[], version="1", enrolment="")
    )
    made.write_launcher(("exclave", "stack"))
    return made


def run(folder: StackFolder, *words: str, stdin: str = "") -> str:
    """Run a line as the Stack's own command writes it."""
    ran = CliRunner().invoke(group, [*words, "--folder", str(folder.path)], input=stdin)
    assert ran.exit_code == 0, ran.output
    return ran.output


@pytest.mark.parametrize("words", [("--help",), ("secrets", "--help"), ("status", "--help")])
def test_help_is_given_beside_the_folder_that_the_command_adds(
    folder: StackFolder, words: tuple[str, ...]
) -> None:
    assert "--help" in run(folder, *words)


def test_the_status_names_what_is_missing_and_the_commands_that_give_it(
    folder: StackFolder,
) -> None:
    told = {"ok": True, "at": "2030-01-02T03:04:05.678901+00:00"}
    folder.write_json(folder.reported, told)

    text, value = run(folder, "status"), json.loads(run(folder, "status", "--json"))

    assert f"missing secret  {folder.launcher} secrets set db\n" in text
    assert f"missing input   {folder.launcher} inputs set 'zone=…'\n" in text
    assert "reported        2030-01-02 03:04:05Z\n" in text
    assert (value["missing_secrets"], value["missing_inputs"]) == (["db"], ["zone", "pin"])


def test_inputs_are_listed_with_values_defaults_and_gaps(folder: StackFolder) -> None:
    folder.write_json(folder.inputs, {"note": "hi"})

    lines = [line.split() for line in run(folder, "inputs", "list").splitlines()]

    assert lines == [
        ["MISSING", "zone", "Where."],
        ["MISSING", "pin"],
        ["3", "(default)", "size"],
        ["hi", "note"],
    ]


def test_a_secret_that_is_too_short_to_be_masked_is_kept_with_a_warning(
    folder: StackFolder,
) -> None:
    short = run(folder, "secrets", "set", "db", stdin="short")
    long = run(folder, "secrets", "set", "db", stdin="long enough")

    assert "too short to be masked" in short
    assert "Kept `db`." in short
    assert "too short" not in long
