"""Backup while the server runs, restore, and go on: nothing that happened since counts."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.site import Site, clean_env, exclave, open_site, wait_until

SCRIPT = "echo begin; sleep {seconds}; echo end"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with open_site(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def lasting_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site for tests that leave it as it is."""
    with open_site(tmp_path_factory.mktemp("site")) as made:
        yield made


def run_server(data: Path, *words: str, check: bool = True) -> dict[str, Any]:
    argv = [*exclave(), "server", "--data", str(data), *words, "--json"]
    done = subprocess.run(
        argv, env=clean_env({}), capture_output=True, text=True, timeout=60, check=False
    )
    assert not check or done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout or "{}"), code=done.returncode, said=done.stderr)


def start_change(site: Site, name: str, seconds: float) -> str:
    spec = {"kind": "script", "steps": [{"name": "w", "script": SCRIPT.format(seconds=seconds)}]}
    step = {"name": "w", "mutating": True, "lanes": [f"component:{name}"], "job": spec}
    made = site.post("/v1/workflows", {"name": name, "queue_id": site.install, "steps": [step]})
    return str(made["id"])


def wait_for(site: Site, workflow: str, state: str) -> None:
    path = f"/v1/workflows/{workflow}"
    wait_until(lambda: site.get(path)["state"] == state, f"{workflow} is {state}")


def wait_until_runs(site: Site, workflow: str) -> None:
    path = f"/v1/workflows/{workflow}"
    wait_until(lambda: site.get(path)["steps"][0]["job_state"] == "running", "it runs")


def test_after_a_restore_old_executions_are_refused_and_new_work_runs(site: Site) -> None:
    done = start_change(site, "done", 0)
    wait_for(site, done, "succeeded")
    zombie = start_change(site, "zombie", 120)
    wait_until_runs(site, zombie)
    data, copy = site.folder / "data", site.folder / "copy"
    assert run_server(data, "backup", str(copy))["files"] > 2
    wait_for(site, start_change(site, "forgotten", 0), "succeeded")
    site.servers[0].kill9()
    shutil.rmtree(data)

    restored = run_server(data, "restore", str(copy))
    site.servers[0].start()
    site.wait_for_server()

    assert (restored["generation"], restored["interrupted"]) == (2, 1)
    assert site.get(f"/v1/workflows/{done}")["state"] == "succeeded"
    assert site.get(f"/v1/workflows/{zombie}")["steps"][0]["reason"] == "restored"
    names = [flow["name"] for flow in site.get("/v1/workflows")["items"]]
    assert "forgotten" not in names
    wait_for(site, start_change(site, "fresh", 0), "succeeded")
    assert site.get(f"/v1/workflows/{zombie}")["steps"][0]["state"] == "lost"


def test_a_damaged_backup_is_refused_and_nothing_is_written(
    lasting_site: Site, tmp_path: Path
) -> None:
    copy, target = tmp_path / "copy", tmp_path / "new"
    run_server(lasting_site.folder / "data", "backup", str(copy))
    database = copy / "exclave.db"
    database.write_bytes(database.read_bytes()[:-1] + b"x")

    answer = run_server(target, "restore", str(copy), check=False)

    assert answer["code"] == 2
    assert "was changed" in answer["said"]
    assert not target.exists() or not any(target.iterdir())


def test_backup_and_restore_want_an_empty_folder(lasting_site: Site) -> None:
    data = lasting_site.folder / "data"

    assert run_server(data, "backup", str(data), check=False)["code"] == 1


def test_a_second_server_on_the_same_sqlite_folder_is_refused(lasting_site: Site) -> None:
    data = lasting_site.folder / "data"
    argv = [*exclave(), "server", "--data", str(data), "--control-port", "0"]

    done = subprocess.run(
        argv,
        env=clean_env({"RUNNER_PORT": "0"}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    assert "another server works on" in done.stderr


def test_settling_a_database_that_was_restored_by_other_means(site: Site) -> None:
    zombie = start_change(site, "zombie", 30)
    wait_until_runs(site, zombie)
    site.servers[0].kill9()

    settled = run_server(site.folder / "data", "settle-restore")
    site.servers[0].start()
    site.wait_for_server()

    assert (settled["generation"], settled["interrupted"]) == (2, 1)
    assert site.get(f"/v1/workflows/{zombie}")["steps"][0]["reason"] == "restored"
    wait_for(site, start_change(site, "fresh", 0), "succeeded")
