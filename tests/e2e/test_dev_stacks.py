"""`exclave dev` runs the Stacks of installs that are marked as `here`, and removes them again."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.site import wait_until
from tests.support.apps import write_app
from tests.support.dev_server import DevServer, open_dev


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[DevServer]:
    with open_dev(tmp_path) as site:
        yield site


def test_an_install_that_is_here_gets_a_stack_keeps_it_and_loses_it(dev: DevServer) -> None:
    app = write_app(dev.folder, "shop")
    dev.ask("apps", "create", "shop")
    dev.ask("apps", "sync", str(app))
    words = ("installs", "create", "shop", "--name", "acme", "--here", "--no-provision")
    install = dev.ask(*words)["id"]

    wait_until(lambda: dev.find_presence("acme") == "up", "the runner is up")
    assert (dev.stacks / install / "stack.json").exists()

    # A second start on other ports finds the same Stack and the same runner.
    dev.stop()
    dev.start()
    wait_until(lambda: dev.find_presence("acme") == "up", "the runner is up again")
    assert len(dev.ask("installs", "get", "acme")["runners"]) == 1

    dev.ask("installs", "delete", "acme", "--yes", "--forget", "a test")
    wait_until(lambda: not list(dev.stacks.glob(f"{install}*")), "the Stack is gone")
    left = subprocess.run(["pgrep", "-f", install], capture_output=True, text=True, check=False)
    assert left.stdout == ""
