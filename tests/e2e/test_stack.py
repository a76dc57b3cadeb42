"""The customer's Stack for real: the script piped into Python, its processes, its folder."""

import json
import os
import signal
import stat
import subprocess
import venv
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.stack_site import StackSite, Vendor, end_stack, open_vendor
from tests.faults.site import wait_until

SLEEPER = {"name": "sleep", "argv": ["sleep", "300"]}


@pytest.fixture(scope="module")
def vendor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vendor]:
    with open_vendor(tmp_path_factory.mktemp("vendor")) as made:
        yield made


@pytest.fixture
def site(vendor: Vendor, request: pytest.FixtureRequest) -> Iterator[StackSite]:
    name = f"i{zlib.crc32(request.node.name.encode())}"
    with end_stack(vendor.make_install(name)) as made:
        yield made


@pytest.fixture
def stack(site: StackSite) -> StackSite:
    site.run_script(site.make_script())
    site.wait_for_presence("up")
    return site


def start_job(site: StackSite, job: dict[str, Any]) -> str:
    body = {"name": "flow", "queue_id": site.install, "steps": [{"name": "work", "job": job}]}
    return str(site.post("/v1/workflows", body)["id"])


def read_step(site: StackSite, workflow: str) -> Any:
    return site.get(f"/v1/workflows/{workflow}")["steps"][0]


def wait_for_job(site: StackSite, workflow: str, state: str) -> Any:
    def look() -> Any:
        step = read_step(site, workflow)
        job = site.get(f"/v1/jobs/{step['job_id']}") if step["job_id"] else None
        return job if job and job["state"] == state else None

    return wait_until(look, f"the job is {state}")


def test_the_script_starts_a_runner_that_enrols_and_phones_home(site: StackSite) -> None:
    said = site.run_script(site.make_script())

    runner = site.wait_for_presence("up")
    wait_until(
        lambda: site.get(f"/v1/installs/{site.install}/stack")["state"] == "active", "report"
    )
    shown = site.get(f"/v1/installs/{site.install}/stack")
    assert runner["queue_id"] == site.install
    assert shown["outputs"]["folder"] == str(site.stack)
    assert shown["outputs"]["db_password_arn"] == "((exclave:secret:db_password))"
    assert "secrets set db_password" in said.stdout
    assert site.run_stack("status")["report"]["ok"] is True


def test_everything_is_for_the_customer_alone_and_the_token_is_gone(stack: StackSite) -> None:
    wait_until((stack.stack / "report.json").exists, "it has reported")

    for path in [stack.stack, *stack.stack.rglob("*")]:
        if not path.is_symlink():
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    assert json.loads((stack.stack / "stack.json").read_text())["enrolment"] == ""
    assert not (stack.stack / "stack.new.json").exists()


def test_the_one_line_command_works_until_the_runner_has_enrolled(site: StackSite) -> None:
    fetch = [
        "sh",
        "-c",
        site.make_stack()["instructions"]["commands"][0].removesuffix(" | python3 -"),
    ]
    first, second = site.run(fetch), site.run(fetch)

    stale = site.run_script(first.stdout, check=False)
    assert stale.returncode == 1
    assert "unknown or expired" in stale.stderr
    site.run_script(second.stdout)
    site.wait_for_presence("up")

    assert site.run(fetch, check=False).returncode == 22
    assert "xcs_" not in (site.vendor / "server.log").read_text()


def test_disabling_stops_work_takes_none_and_is_shown(stack: StackSite) -> None:
    running = start_job(stack, {"kind": "script", "steps": [SLEEPER]})
    wait_for_job(stack, running, "running")

    stack.run_stack("disable")

    ended = wait_for_job(stack, running, "cancelled")
    shown = stack.wait_for_presence("disabled")
    detail = stack.get(f"/v1/installs/{stack.install}")
    waiting = start_job(stack, {"kind": "noop"})
    assert ended["reason"] == "disabled"
    assert shown["cause"] == "disabled by the customer"
    assert [one["presence"] for one in detail["runners"]] == ["disabled"]
    # A restart does not help the vendor either.
    stack.run_stack("stop")
    stack.run_stack("start")
    stack.wait_for_presence("disabled")
    assert wait_for_job(stack, waiting, "queued")

    stack.run_stack("enable")

    wait_for_job(stack, waiting, "succeeded")
    assert stack.wait_for_presence("up")


def test_the_runner_is_started_again_when_it_is_killed(stack: StackSite) -> None:
    child = find_child(stack)

    os.kill(child, signal.SIGKILL)

    wait_until(lambda: find_child(stack) not in {0, child}, "there is another runner")
    wait_for_job(stack, start_job(stack, {"kind": "noop"}), "succeeded")


def test_a_killed_supervisor_leaves_no_orphan_and_can_be_started_again(stack: StackSite) -> None:
    os.kill(stack.run_stack("status")["pid"], signal.SIGKILL)

    wait_until(lambda: stack.list_processes() == "", "the runner has ended as well")
    assert stack.run_stack("status")["state"] == "stopped"
    assert stack.run_stack("start")["state"] == "running"


def test_running_the_script_again_changes_nothing(stack: StackSite) -> None:
    pid = stack.run_stack("status")["pid"]

    stack.run_script(stack.make_script())

    assert stack.run_stack("status")["pid"] == pid
    assert len(stack.get("/v1/runners", queue_id=stack.install)["items"]) == 1


def test_a_revoked_stack_ends_says_why_and_enrols_anew_with_a_new_script(
    stack: StackSite,
) -> None:
    first = stack.find_runner()["id"]
    seal = stack.stack / "runner" / "seal.key"
    seal.write_text("kept")
    stack.post(f"/v1/runners/{first}/revoke", {"reason": "a test"})

    wait_until(lambda: stack.run_stack("status")["state"] == "refused", "it has ended")
    assert "a test" in stack.run_stack("status")["problem"]
    stack.run_script(stack.make_script())

    assert stack.wait_for_presence("up")["id"] != first
    assert seal.read_text() == "kept"


def test_stopping_and_uninstalling_leave_no_process_and_no_file(stack: StackSite) -> None:
    script = stack.make_script()
    workflow = start_job(stack, {"kind": "script", "steps": [SLEEPER]})
    wait_for_job(stack, workflow, "running")

    assert stack.run_stack("stop")["state"] == "stopped"
    assert stack.list_processes() == ""
    assert stack.run_stack("start")["state"] == "running"
    done = stack.run_script(script, "--uninstall")

    assert "no process and no file" in done.stdout
    assert stack.list_processes() == ""
    assert list((stack.folder / "customer").iterdir()) == []
    assert stack.find_runner()["state"] == "revoked"
    assert stack.find_runner()["cause"] == "removed by the customer"
    assert stack.get(f"/v1/installs/{stack.install}/stack")["state"] == "removed"


def test_uninstalling_asks_first_and_works_without_the_control_plane(stack: StackSite) -> None:
    refused = stack.run([str(stack.stack / "stack"), "uninstall"], check=False)
    document = json.loads((stack.stack / "stack.json").read_text())
    stack.run_stack("stop")
    document["runner_url"] = "http://127.0.0.1:9"
    (stack.stack / "stack.json").write_text(json.dumps(document))

    done = stack.run_stack("uninstall", "--yes")

    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert done["told"] is False
    assert list((stack.folder / "customer").iterdir()) == []


def test_secrets_are_kept_at_the_customer_and_used_by_jobs(stack: StackSite) -> None:
    value = "correct horse battery staple"
    reader = {
        "kind": "script",
        "secrets": {"PASSWORD": "db_password"},
        "steps": [
            {"name": "say", "script": 'echo "<$PASSWORD>"; echo "p=$PASSWORD" > $EXCLAVE_OUTPUTS'}
        ],
    }
    missing = wait_for_job(stack, start_job(stack, reader), "failed")
    unknown = stack.run_stack("secrets", "set", "nonsense", stdin="x", check=False)

    stack.run_stack("secrets", "set", "db_password", stdin=value + "\n")
    stack.run_stack("secrets", "generate", "session_key")

    done = wait_for_job(stack, start_job(stack, reader), "succeeded")
    assert missing["reason"] == "secret_missing"
    assert f"{stack.stack}/stack secrets set db_password" in missing["message"]
    assert unknown["error"]["code"] == "not_found"
    assert value not in json.dumps(done)
    kept = json.loads((stack.stack / "secrets.json").read_text())
    assert kept["db_password"] == value
    assert len(kept["session_key"]) == 63
    wait_until(
        lambda: (
            stack.get(f"/v1/installs/{stack.install}/stack")["outputs"]["secrets"]
            == {"db_password": True, "session_key": True}
        ),
        "the control plane knows that they are there",
    )
    for file in [stack.vendor / "server.log", *(stack.vendor / "data").rglob("*")]:
        assert not file.is_file() or value.encode() not in file.read_bytes(), file


def test_inputs_of_the_customer_reach_the_install(stack: StackSite) -> None:
    stack.run_stack("inputs", "set", "zone=b")

    shown = stack.get(f"/v1/installs/{stack.install}/stack")
    assert shown["outputs"]["install_inputs"] == {"zone": "b"}
    foreign = stack.run_stack("inputs", "set", "domain=evil.test", check=False)
    assert foreign["error"]["code"] == "not_found"


def test_the_unit_file_names_this_stack(site: StackSite) -> None:
    done = site.run_script(site.make_script(), "--systemd")

    assert f"--folder {site.stack}" in done.stdout
    assert "[Service]" in done.stdout
    assert site.list_processes() == ""


def test_a_machine_without_the_program_gets_it_from_the_control_plane(site: StackSite) -> None:
    """The slow one: a bare interpreter, a real venv, dependencies from the package index."""
    bare = site.folder / "bare"
    venv.create(bare, with_pip=False, symlinks=True)
    script = site.make_script()

    site.run_script(script, python=str(bare / "bin" / "python"))

    site.wait_for_presence("up")
    python = site.stack / "venv" / "bin" / "python"
    assert str(python) in site.list_processes()
    wait_for_job(site, start_job(site, {"kind": "noop"}), "succeeded")
    listed = subprocess.run(
        [python, "-m", "pip", "list"], capture_output=True, text=True, check=True
    )
    assert "fastapi" not in listed.stdout
    site.run_script(script, "--uninstall")
    assert not site.stack.exists()  # pip may leave traces of its own in the home
    assert site.list_processes() == ""


def test_a_program_with_another_hash_is_not_installed(site: StackSite) -> None:
    bare = site.folder / "bare"
    venv.create(bare, with_pip=False, symlinks=True)
    script = site.make_script()
    begin = script.index("'sha256': '") + len("'sha256': '")
    forged = script[:begin] + "0" * 64 + script[begin + 64 :]

    done = site.run_script(forged, python=str(bare / "bin" / "python"), check=False)

    assert done.returncode == 1
    assert "not the one that this script was made for" in done.stderr
    assert not (site.stack / "venv").exists()


def test_a_control_plane_with_other_keys_is_not_trusted(site: StackSite) -> None:
    script = site.make_script()
    begin = script.index("'public_key': '") + len("'public_key': '")
    forged = script[:begin] + "A" * 43 + script[begin + 43 :]

    done = site.run_script(forged, check=False)

    assert done.returncode == 1
    assert "other keys" in done.stderr
    assert not (site.stack / "runner" / "identity.json").exists()


def find_child(site: StackSite) -> int:
    """Find the runner's process below the supervisor."""
    done = subprocess.run(
        ["pgrep", "-f", f"stack run --folder {site.stack}"],
        capture_output=True,
        text=True,
        check=False,
    )
    return int(done.stdout.split()[0]) if done.stdout else 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start jobs as other users")
def test_a_stack_of_root_isolates_its_jobs_and_says_so(site: StackSite) -> None:
    site.env = {"EXCLAVE_RUN_AS": ""}

    said = site.run_script(site.make_script())
    site.wait_for_presence("up")
    seen = {"name": "look", "script": f"id -u; cat {site.stack}/secrets.json 2>&1 || pwd"}
    job = wait_for_job(site, start_job(site, {"kind": "script", "steps": [seen]}), "succeeded")
    records = site.get(f"/v1/jobs/{job['id']}/logs")["records"]

    texts = [record["text"] for record in records][1:]  # behind the name of the step
    first, last = (site.stack / "runner" / "uids").read_text().split("-")
    assert "Each job of this Stack runs as an unused uid of its own" in said.stderr
    assert int(first) <= int(texts[0]) <= int(last)
    assert "Permission denied" in texts[1]
    jobs = Path(texts[2]).parents[3]
    wait_until(lambda: site.get(f"/v1/installs/{site.install}/stack")["outputs"], "it has reported")
    assert site.get(f"/v1/installs/{site.install}/stack")["outputs"]["jobs_isolated"] == "true"
    again = site.run_script(site.make_script())
    assert "uid" not in again.stderr
    site.run_script(site.make_script(), "--uninstall")
    assert not jobs.exists()
