"""The quickstart does what it says: its commands, in order, on a real Terraform."""

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.site import clean_env, exclave, wait_until
from tests.support.dev_server import DevServer, open_dev
from tests.support.tools import need_terraform

PAGE = Path(__file__).parents[2] / "docs" / "quickstart.md"
BY_HAND = {"make dev", ". .venv/bin/activate"}
"""What the fixture does in its own way: on free ports, with the environment that runs the tests."""
ASKS = "exclave workflows approve globex"


def read_commands() -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[DevServer]:
    need_terraform()
    with open_dev(tmp_path) as site:
        yield site


def answer(dev: DevServer, words: list[str], reply: str) -> str:
    """Run a command on a terminal of its own, and answer its question."""
    ours, theirs = os.openpty()
    env = clean_env({"CONFIG": str(dev.folder / "none.toml")})
    with subprocess.Popen(
        [*exclave(), *words], cwd=dev.folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs
    ) as asking:
        os.close(theirs)
        shown = b""
        while b"[y/N]" not in shown:
            shown += os.read(ours, 4096)
        os.write(ours, f"{reply}\n".encode())
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:
            pass  # the terminal is closed with its last program
        assert asking.wait(60) == 0, shown.decode()
    os.close(ours)
    return shown.decode()


def test_the_commands_of_the_quickstart_lead_to_its_end(dev: DevServer) -> None:
    commands = [each for each in read_commands() if each not in BY_HAND]
    assert len(read_commands()) == len(commands) + len(BY_HAND)
    assert ASKS in commands
    said: dict[str, str] = {}
    install = ""

    for command in commands:
        program, *words = shlex.split(command)
        assert program == "exclave", command
        said[command] = answer(dev, words, "y") if command == ASKS else dev.run(*words).stdout
        if words[:2] == ["installs", "create"]:
            install = str(dev.ask("installs", "get", "globex")["id"])

    assert "terraform_data.base will be created" in said[ASKS]
    assert "workflow provision succeeded" in said["exclave workflows watch globex"]
    assert "greets world" in said["exclave installs readme globex"]
    assert "The page for world is <h1>" in said["exclave actions run globex greet --wait"]
    changed = said["exclave installs inputs set globex who=moon --wait"]
    assert "The page for moon is <h1>" in changed
    assert "sandbox" not in changed
    assert "deprovisioned" in said["exclave installs get globex"]
    assert "globex" not in dev.run("installs", "list").stdout
    wait_until(lambda: not list(dev.stacks.glob("*")), "the Stack is gone")
    left = subprocess.run(["pgrep", "-f", install], capture_output=True, text=True, check=False)
    assert left.stdout == ""
