"""The page about the Python client: every example on it runs against a real server."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.site import clean_env
from tests.support.dev_server import DevServer, open_dev
from tests.unit.docs.pages import ROOT, Page

PAGE = Page(ROOT / "docs" / "how-to" / "use-the-python-client.md")


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[DevServer]:
    with open_dev(tmp_path) as site:
        yield site


def run_example(dev: DevServer, code: str) -> list[str]:
    login = json.loads((dev.folder / ".exclave" / "dev.json").read_text())
    env = clean_env({"URL": login["control_url"], "TOKEN": login["token"]})
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_examples_of_the_page_run(dev: DevServer) -> None:
    dev.run("installs", "create", "--name", "acme", "--label", "tier=gold")
    dev.run("installs", "create", "--name", "globex")

    workflow, filtered, error = (run_example(dev, code) for code in PAGE.fences("python"))

    assert {line for line in workflow if line.startswith("install ")} == {
        "install acme, labels {'tier': 'gold'}",
        "install globex, labels {}",
    }
    assert "log: hello from the runner" in workflow
    assert workflow[-1] == "workflow hello: succeeded"
    assert filtered == ["gold: ['acme']"]
    assert error == ["404 not_found"]
