"""The text of the local Stack: one script, the same for the same Stack, with one short secret."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from exclave.domain.stacks import StackInput, StackSecret, StackTerms
from exclave.stacks.base import RunnerProgram, SigningKey, StackAddress, StackDocument
from exclave.stacks.local import LocalStack
from exclave.stacks.local_script_template import prepare_folder

TOKEN = "xce_" + "7" * 52
NASTY = 'a \'quote\', """ three, \\ back, {braces},   # noqa: X and \n a line'


def make_document(secrets: tuple[StackSecret, ...] | None = None) -> StackDocument:
    declared = (StackSecret("db_password", description=NASTY, required=True),)
    return StackDocument(
        terms=StackTerms(
            install_id="ins_" + "0" * 26,
            install="acme",
            app="shop",
            secrets=declared if secrets is None else secrets,
            inputs=(StackInput("zone"),),
        ),
        runner_url="https://runners.example.com",
        keys=(SigningKey("k1-abc", "A" * 43),),
        program=RunnerProgram("1.2.3", "exclave-1.2.3-py3-none-any.whl", "f" * 64),
        enrolment=TOKEN,
    )


def render(document: StackDocument) -> str:
    (file,) = LocalStack().render(document).files
    return file.content


def write_command(runner_url: str) -> str:
    (command,) = LocalStack().write_instructions(StackAddress(runner_url, "xcs_1")).commands
    return command


def find_warning(runner_url: str) -> str:
    return LocalStack().write_instructions(StackAddress(runner_url, "xcs_1")).warning


def read_constant(script: str, name: str) -> object:
    for node in ast.parse(script).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name and node.value:
            return ast.literal_eval(node.value)
    raise AssertionError(name)


def test_the_script_compiles_and_carries_the_stack_as_it_is() -> None:
    script = render(make_document())

    compile(script, "local.py", "exec")
    assert read_constant(script, "STACK") == {
        "terms": {
            "install_id": "ins_" + "0" * 26,
            "install": "acme",
            "app": "shop",
            "secrets": [
                {
                    "name": "db_password",
                    "description": NASTY,
                    "required": True,
                    "auto_generate": False,
                }
            ],
            "inputs": [
                {
                    "name": "zone",
                    "description": "",
                    "type": "string",
                    "default": None,
                    "required": False,
                    "sensitive": False,
                }
            ],
        },
        "runner_url": "https://runners.example.com",
        "keys": [{"kid": "k1-abc", "public_key": "A" * 43, "signed_by": None, "signature": None}],
        "version": "1.2.3",
        "enrolment": TOKEN,
    }
    assert read_constant(script, "PACKAGE") == {
        "file": "exclave-1.2.3-py3-none-any.whl",
        "sha256": "f" * 64,
    }


def test_the_same_stack_gives_the_same_text() -> None:
    assert render(make_document()) == render(make_document())


def test_the_one_time_token_is_the_only_secret_in_it() -> None:
    script = render(make_document())

    assert re.findall(r"xc[a-z]_[0-9a-z]{20,}", script) == [TOKEN]


def test_only_the_standard_library_is_imported() -> None:
    tree = ast.parse(render(make_document()))
    names = {
        alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    } | {
        (node.module or "").partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
    }

    assert names <= sys.stdlib_module_names


def test_notes_for_our_linter_stay_with_us() -> None:
    script = render(make_document(secrets=()))

    assert "noqa" not in script


def test_help_and_a_missing_stack_are_explained(tmp_path: Path) -> None:
    script = render(make_document())

    helped = run(script, "--help")
    missing = run(script, "--status", "--folder", str(tmp_path / "none"))
    both = run(script, "--stop", "--disable")

    assert helped.returncode == 0
    assert "--uninstall" in helped.stdout
    assert missing.returncode == 1
    assert "there is no Stack" in missing.stderr
    assert both.returncode == 2
    assert not (tmp_path / "none").exists()


def test_the_command_is_one_line_that_a_shell_takes_as_it_is() -> None:
    assert write_command("https://r.example.com/") == (
        "printf %s 'url = \"https://r.example.com/v1/stacks/xcs_1/local.py\"'"
        " | curl -fsSK - | python3 -"
    )


@pytest.mark.parametrize("place", ["plain", "a b", "it's", 'a"b', "c\\d", "$(id)", "%s"])
def test_curl_gets_the_address_and_nobody_sees_it_in_arguments(tmp_path: Path, place: str) -> None:
    seen = tmp_path / "argv"
    tool = tmp_path / "curl"
    tool.write_text(f"#!/bin/sh\necho \"$@\" > {seen}\ncat > {tmp_path}/config\necho 'print(1)'\n")
    tool.chmod(0o700)
    command = write_command(f"https://r.example.com/{place}")

    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    ran = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, check=True)

    config = (tmp_path / "config").read_text()
    quoted = place.replace("\\", "\\\\").replace('"', '\\"')
    assert config == f'url = "https://r.example.com/{quoted}/v1/stacks/xcs_1/local.py"'
    assert seen.read_text() == "-fsSK -\n"
    assert ran.stdout == "1\n"


@pytest.mark.parametrize("url", ["http://r.example.com", "http://10.0.0.1:8701", "r.example.com"])
def test_a_line_over_plain_http_comes_with_a_warning(url: str) -> None:
    assert "https" in find_warning(url)


@pytest.mark.parametrize(
    "url", ["https://r.example.com", "http://127.0.0.1:8701", "http://[::1]:1"]
)
def test_a_line_over_https_or_to_this_machine_needs_none(url: str) -> None:
    assert find_warning(url) == ""


def test_a_folder_of_others_is_left_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "srv"
    folder.mkdir()
    folder.chmod(0o755)
    (folder / "www").mkdir()

    ran = run(render(make_document()), "--folder", str(folder))

    assert ran.returncode == 1
    assert f"{folder} is not used: it has files in it that are not a Stack's" in ran.stderr
    assert "name a new or empty folder with --folder" in ran.stderr
    assert folder.stat().st_mode & 0o777 == 0o755
    assert [each.name for each in folder.iterdir()] == ["www"]


@pytest.mark.parametrize("content", [None, "", "stack.json", "stack.new.json"])
def test_a_new_an_empty_and_a_stacks_own_folder_are_closed_to_others(
    tmp_path: Path, content: str | None
) -> None:
    folder = tmp_path / "deep" / "stack"
    if content is not None:
        folder.mkdir(parents=True, mode=0o755)
    if content:
        (folder / content).touch()
        (folder / "venv").mkdir()

    prepare_folder(folder)

    assert folder.stat().st_mode & 0o777 == 0o700


def test_home_root_files_and_folders_of_other_users_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "stack.json").touch()
    file, empty = tmp_path / "file", tmp_path / "empty"
    file.touch()
    empty.mkdir()
    before = {place: place.stat().st_mode for place in (Path("/"), tmp_path, file, empty)}

    with pytest.raises(ValueError, match="holds more than a Stack"):
        prepare_folder(Path("/"))
    with pytest.raises(ValueError, match="holds more than a Stack"):
        prepare_folder(tmp_path)
    with pytest.raises(ValueError, match="is not a folder"):
        prepare_folder(file)
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    with pytest.raises(ValueError, match="belongs to another user"):
        prepare_folder(empty)

    assert {place: place.stat().st_mode for place in before} == before


def run(script: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-", *words], input=script, capture_output=True, text=True, check=False
    )
