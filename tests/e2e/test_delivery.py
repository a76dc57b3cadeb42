"""The example app from its directory to a running install and back, with real Terraform."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.faults.site import find_port, wait_until
from tests.support.apps import edit
from tests.support.dev_server import DevServer, open_dev
from tests.support.tools import need_terraform, need_tool

EXAMPLE = Path(__file__).parents[2] / "examples" / "noticeboard"


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[DevServer]:
    need_terraform()
    shutil.copytree(EXAMPLE, tmp_path / "noticeboard")
    with open_dev(tmp_path, TOOLS=str(need_tool("opa").parent)) as site:
        yield site


def fetch(url: str) -> str:
    return httpx.get(url, timeout=10, trust_env=False).text


def test_the_example_lives_from_sync_to_deprovision(dev: DevServer) -> None:
    port = find_port()
    url = f"http://127.0.0.1:{port}/"

    provision(dev, port, url)
    refuse_by_policy(dev, port)
    change_an_input(dev)
    find_no_drift(dev)
    upgrade(dev, url)
    operate_by_hand(dev, url)
    deprovision(dev, url)


def provision(dev: DevServer, port: int, url: str) -> None:
    """The first plan is looked at, approved by its digest; the rest is approved in advance."""
    dev.ask("apps", "create", "noticeboard")
    dev.run("apps", "sync", "noticeboard", "--wait")
    words = ("installs", "create", "noticeboard", "--name", "acme", "--here")
    dev.ask(*words, "--input", f"port={port}")

    gate, digest = dev.await_gate("acme")
    shown = dev.run("workflows", "plan", "acme", "sandbox-plan").stdout
    assert "terraform_data.folder" in shown
    dev.run("workflows", "approve", "acme", gate, "--digest", "sha256:" + "0" * 64, code=1)
    dev.run("workflows", "approve", "acme", "--digest", digest)
    dev.run("workflows", "approve-all", "acme", "--yes")
    watched = dev.run("workflows", "watch", "acme").stdout
    assert "Hello from your own machine" in fetch(url)
    assert "knows its password: ***" in watched
    assert url in dev.run("installs", "readme", "acme").stdout
    state = dev.ask("installs", "state", "acme")["document"]
    assert state["actions"]["workflows"]["check"]["outputs"]["status"] == "200"


def refuse_by_policy(dev: DevServer, port: int) -> None:
    """A policy of the app refuses a plan, and nothing happens."""
    dev.run("installs", "approve-all", "acme", "on", "--yes")
    dev.run("installs", "inputs", "set", "acme", "port=80", "--wait", code=1)
    denied = dev.ask("workflows", "get", "acme")["steps"]
    assert [s["reason"] for s in denied if s["name"] == "page.plan"] == ["policy_denied"]
    dev.run("installs", "inputs", "set", "acme", f"port={port}", "--wait")


def change_an_input(dev: DevServer) -> None:
    """A change of an input redeploys what reads it and what stands on that, nothing else."""
    dev.run("installs", "inputs", "set", "acme", "cache_size=250", "--wait")
    assert dev.list_ran("acme", ".plan") == {"cache", "api", "page"}
    assert dev.list_ran("acme", ".apply") == {"cache", "api"}


def find_no_drift(dev: DevServer) -> None:
    """Nothing drifted, and a deploy of all changes nothing."""
    dev.run("installs", "drift", "acme", "--wait")
    parts = dev.ask("installs", "get", "acme")["parts"]
    assert {part["drift"] for part in parts} == {"none"}
    dev.run("installs", "deploy", "acme", "--all", "--wait")
    assert dev.list_ran("acme", ".apply") == set()


def upgrade(dev: DevServer, url: str) -> None:
    """A new version of the app reaches the install when it is asked to."""
    app = dev.folder / "noticeboard"
    edit(app, "modules/page/main.tf", "Served by", "Brought to you by")
    dev.run("apps", "sync", "noticeboard", "--wait")
    assert "Served by" in fetch(url)
    dev.run("installs", "upgrade", "acme", "--deploy", "--wait", "--yes")
    assert dev.list_ran("acme", ".apply") == {"page"}
    assert "Brought to you by" in fetch(url)


def operate_by_hand(dev: DevServer, url: str) -> None:
    """Actions and runbooks by hand; a component down and up again."""
    dev.run("actions", "run", "acme", "check", "--wait")
    dev.run("runbooks", "run", "acme", "refresh", "--wait")
    dev.run("installs", "teardown", "acme", "page", "--wait", "--yes")
    with pytest.raises(httpx.ConnectError):
        fetch(url)
    dev.run("installs", "deploy", "acme", "page", "--wait")
    assert "Brought to you by" in fetch(url)
    dev.run("installs", "sync-secrets", "acme", "--wait")
    dev.run("installs", "reprovision", "acme", "--wait")
    dev.run("installs", "deprovision", "acme", "--sandbox", "--yes", code=2)
    dev.run("installs", "teardown", "acme", "--all", "--wait", "--yes")
    dev.run("installs", "deprovision", "acme", "--sandbox", "--wait", "--yes")
    assert {part["state"] for part in dev.ask("installs", "get", "acme")["parts"]} == {"absent"}
    dev.run("installs", "reprovision", "acme", "--sandbox", "--wait")
    assert "Brought to you by" in fetch(url)


def deprovision(dev: DevServer, url: str) -> None:
    """Down again: no process, no file, no resource in any state, no Stack."""
    dev.run("installs", "deprovision", "acme", "--wait", "--yes")
    with pytest.raises(httpx.ConnectError):
        fetch(url)
    states = dev.ask("installs", "tf-state", "list", "acme")["items"]
    assert {len(each["newest"]["resources"]) for each in states} == {0}
    install = dev.ask("installs", "get", "acme")
    assert install["state"] == "deprovisioned"
    stack = dev.stacks / install["id"]
    wait_until(lambda: not stack.exists(), "the Stack is gone")
