"""The text of the local Stack: one script, the same for the same Stack, with one short secret."""

import ast
import re
import subprocess
import sys
from pathlib import Path

from exclave.stacks.local import LocalStack, make_command, make_local_script

TOKEN = "xce_" + "7" * 52
NASTY = 'a \'quote\', """ three, \\ back, {braces},   # noqa: X and \n a line'


def make_stack(**terms: object) -> LocalStack:
    document = {
        "terms": {
            "install_id": "ins_" + "0" * 26, "install": "acme", "app": "shop",
            "secrets": [{"name": "db_password", "description": NASTY, "required": True}],
            "inputs": [{"name": "zone", "description": "", "default": None}],
            **terms,
        },
        "runner_url": "https://runners.example.com",
        "keys": [{"kid": "k1-abc", "public_key": "A" * 43}],
        "version": "1.2.3",
        "enrolment": TOKEN,
    }  # fmt: skip
    return LocalStack(document, "exclave-1.2.3-py3-none-any.whl", "f" * 64)


def read_constant(script: str, name: str) -> object:
    for node in ast.parse(script).body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name and node.value:
            return ast.literal_eval(node.value)
    raise AssertionError(name)


def test_the_script_compiles_and_carries_the_stack_as_it_is() -> None:
    script = make_local_script(make_stack())

    compile(script, "local.py", "exec")
    assert read_constant(script, "STACK") == make_stack().document
    assert read_constant(script, "PACKAGE") == {
        "file": "exclave-1.2.3-py3-none-any.whl", "sha256": "f" * 64,
    }  # fmt: skip


def test_the_same_stack_gives_the_same_text() -> None:
    assert make_local_script(make_stack()) == make_local_script(make_stack())


def test_the_one_time_token_is_the_only_secret_in_it() -> None:
    script = make_local_script(make_stack())

    assert re.findall(r"xc[a-z]_[0-9a-z]{20,}", script) == [TOKEN]


def test_only_the_standard_library_is_imported() -> None:
    tree = ast.parse(make_local_script(make_stack()))
    names = {
        alias.name.partition(".")[0]
        for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    } | {
        (node.module or "").partition(".")[0]
        for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    }  # fmt: skip

    assert names <= sys.stdlib_module_names


def test_notes_for_our_linter_stay_with_us() -> None:
    script = make_local_script(make_stack(secrets=[]))

    assert "noqa" not in script


def test_help_and_a_missing_stack_are_explained(tmp_path: Path) -> None:
    script = make_local_script(make_stack())

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
    assert make_command("https://r.example.com/", "xcs_1") == (
        "curl -fsS https://r.example.com/v1/stacks/xcs_1/local.py | python3 -"
    )
    assert "'https://r.example.com/a b/v1" in make_command("https://r.example.com/a b", "xcs_1")


def run(script: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-", *words], input=script, capture_output=True, text=True, check=False
    )
