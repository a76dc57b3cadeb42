"""What a customer sees of a Stack that does not run: its help, what it misses."""

import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from exclave.base.clock import SystemClock
from exclave.base.errors import NotFound
from exclave.base.json_values import JsonObject
from exclave.cli.root import LazyCommand, build_root
from exclave.cli.root import run as run_root
from exclave.main.commands.stack import group
from exclave.runner.stack.folder import NoStack, StackFolder
from exclave.runner.stack.lifecycle import StackFailed, remove
from exclave.wire.stacks import StackDocument, StackInput, StackSecret, StackTerms

TERMS = StackTerms(
    install_id="ins_" + "0" * 26,
    install="acme",
    app="shop",
    secrets=[StackSecret(name="db", required=True, description="For the database.")],
    inputs=[
        StackInput(name="zone", required=True, description="Where."),
        StackInput(name="pin", required=True, sensitive=True),
        StackInput(name="size", default="3"),
        StackInput(name="note"),
    ],
)


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


@pytest.mark.parametrize("verb", ["up", "start"])
def test_a_folder_without_a_stack_is_left_as_it_is(tmp_path: Path, verb: str) -> None:
    (tmp_path / "logs").mkdir(mode=0o755)
    before = tmp_path.stat().st_mode, (tmp_path / "logs").stat().st_mode

    ran = CliRunner().invoke(group, [verb, "--folder", str(tmp_path)])

    assert isinstance(ran.exception, NoStack)
    assert (tmp_path.stat().st_mode, (tmp_path / "logs").stat().st_mode) == before
    assert [each.name for each in tmp_path.iterdir()] == ["logs"]


async def test_a_stack_in_the_home_folder_does_not_take_it_away(
    folder: StackFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder.path))

    with pytest.raises(StackFailed, match="holds more than a Stack"):
        await remove(folder, SystemClock())

    assert folder.document.exists()


@pytest.mark.parametrize("words", [("--help",), ("secrets", "--help"), ("status", "--help")])
def test_help_is_given_beside_the_folder_that_the_command_adds(
    folder: StackFolder, words: tuple[str, ...]
) -> None:
    assert "--help" in run(folder, *words)


def test_the_status_names_what_is_missing_and_the_commands_that_give_it(
    folder: StackFolder,
) -> None:
    told: JsonObject = {"ok": True, "at": "2030-01-02T03:04:05.678901+00:00"}
    folder.write_json(folder.reported, told)

    text, value = run(folder, "status"), json.loads(run(folder, "status", "--json"))

    assert f"missing secret  {folder.launcher} secrets set db\n" in text
    assert f"missing input   {folder.launcher} inputs set 'zone=…'\n" in text
    assert "reported        2030-01-02 03:04:05Z\n" in text
    assert (value["missing_secrets"], value["missing_inputs"]) == (["db"], ["zone", "pin"])
    assert value["report"] == told


def test_the_status_of_a_stack_that_never_reported_has_an_empty_report(folder: StackFolder) -> None:
    assert json.loads(run(folder, "status", "--json"))["report"] == {}


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
    assert "Stored `db`." in short
    assert "too short" not in long


def test_the_login_of_the_registry_for_images_is_set_in_any_stack(folder: StackFolder) -> None:
    run(folder, "secrets", "set", "registry_username", stdin="customer")
    run(folder, "secrets", "set", "registry_password", stdin="registry password")
    listed = json.loads(run(folder, "secrets", "list", "--json"))["secrets"]
    ran = CliRunner().invoke(
        group, ["secrets", "set", "registry", "--folder", str(folder.path)], input="x"
    )

    assert {secret["name"]: secret["exists"] for secret in listed} == {
        "db": False,
        "registry_username": True,
        "registry_password": True,
    }
    assert isinstance(ran.exception, NotFound)


@pytest.mark.parametrize("words", [("status",), ("secrets", "list"), ("inputs", "list")])
@pytest.mark.parametrize("more", [(), ("--json",)], ids=["text", "json"])
def test_what_a_vendor_wrote_reaches_no_terminal_raw(
    folder: StackFolder, words: tuple[str, ...], more: tuple[str, ...]
) -> None:
    evil = "\x1b]0;PWNED\x07\x9b2J\u202e"
    terms = StackTerms(
        install_id="ins_" + "0" * 26,
        install=f"acme{evil}",
        app=f"shop{evil}",
        secrets=[StackSecret(name="db", required=True, description=evil)],
        inputs=[StackInput(name="zone", required=True, description=evil)],
    )
    folder.write_document(
        StackDocument(terms=terms, runner_url=evil, keys=[], version="1", enrolment="")
    )
    folder.write_json(folder.reported, {"ok": False, "message": evil, "hint": evil})
    root = build_root({"stack": LazyCommand("exclave.main.commands.stack", "group", "")})

    with pytest.MonkeyPatch.context() as patch, io.StringIO() as out, io.StringIO() as err:
        patch.setattr("sys.stdout", out)
        patch.setattr("sys.stderr", err)
        run_root(root, ["stack", *words, "--folder", str(folder.path), *more], {})
        told = out.getvalue() + err.getvalue()

    assert "PWNED" in told
    assert [each for each in "\x1b\x07\x9b\u202e" if each in told] == []
