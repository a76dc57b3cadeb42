"""`exclave dev` and the CLI as a new user meets them: real processes, real commands."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.site import KillableProcess, clean_env, exclave, wait_until
from tests.support.command_line import run_exclave
from tests.support.tools import need_terraform

WORKFLOW = """
name = "hello"

[[steps]]
name = "greet"
[steps.job]
kind = "script"
secrets = {}
[[steps.job.steps]]
name = "say"
script = "echo hello from $0; echo 'who=world' > $EXCLAVE_OUTPUTS"

[[steps]]
name = "sure"
kind = "gate"
needs = ["greet"]
"""


def run(folder: Path, *words: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
    env = clean_env({"CONFIG": str(folder / "none.toml")})
    done = run_exclave(*words, folder=folder, env=env)
    assert not check or done.returncode == 0, (words, done.stdout, done.stderr)
    return done


def ask(folder: Path, *words: str) -> Any:
    return json.loads(run(folder, *words, "--json").stdout)


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[Path]:
    argv = [*exclave(), "dev", "--control-port", "0", "--runner-port", "0"]
    process = KillableProcess(argv, clean_env({}), tmp_path / "dev.log")
    process.argv = argv
    with (tmp_path / "dev.log").open("ab") as out:
        process.running = subprocess.Popen(
            argv, cwd=tmp_path, env=process.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
    try:
        said = tmp_path / "dev.log"
        wait_until(lambda: "Serving until" in said.read_text(), "exclave dev serves")
        yield tmp_path
    finally:
        process.stop()
    assert process.running is not None
    assert process.running.returncode == 0


def test_a_new_user_runs_approves_reads_and_searches(dev: Path) -> None:
    assert "found by `exclave` in this folder" in (dev / "dev.log").read_text()
    (dev / "hello.toml").write_text(WORKFLOW)

    assert ask(dev, "auth", "whoami")["account"] == "dev"
    assert ask(dev, "installs", "list")["items"] == [], "nobody asked for one"
    assert {r["presence"] for r in ask(dev, "runners", "list")["items"]} == {"up"}

    made = ask(dev, "workflows", "run", "hello.toml", "--build")
    path = ("workflows", "get", made["id"])
    wait_until(lambda: ask(dev, *path)["steps"][1]["state"] == "active", "the gate is open")
    step = ask(dev, *path)["steps"][1]
    run(dev, "workflows", "approve", made["id"], "sure", "--digest", step["digest"])
    shown = ask(dev, *path)

    assert shown["state"] == "succeeded"
    assert shown["steps"][0]["outputs"] == {"who": "world"}
    job = shown["steps"][0]["job_id"]
    assert "hello from" in run(dev, "logs", "tail", job).stdout
    assert "hello from" in run(dev, "logs", "search", "HELLO", "--build").stdout
    actions = {entry["action"] for entry in ask(dev, "audit", "list")["items"]}
    assert {"org_created", "runner_enrolled", "step_approved"} <= actions


def test_watching_exits_1_when_the_workflow_fails(dev: Path) -> None:
    (dev / "bad.toml").write_text(WORKFLOW.replace("echo hello", "echo oops; exit 3; echo"))

    done = run(dev, "workflows", "run", "bad.toml", "--build", "--watch", check=False)

    assert done.returncode == 1
    assert "oops" in done.stdout


def test_what_a_first_start_made_is_found_again(dev: Path) -> None:
    login = json.loads((dev / ".exclave" / "dev.json").read_text())

    assert (dev / ".exclave" / "dev.json").stat().st_mode & 0o777 == 0o600
    assert re.fullmatch(r"xcl_[0-9a-z]{52}", login["token"])
    assert run(dev, "auth", "whoami").stdout


def test_the_demo_succeeds_and_exits_0(tmp_path: Path) -> None:
    need_terraform()
    example = Path(__file__).parents[2] / "examples" / "noticeboard"
    ports = ("--control-port", "0", "--runner-port", "0")
    argv = [*exclave(), "dev", "--demo", str(example), "--exit", *ports]

    done = subprocess.run(
        argv,
        cwd=tmp_path,
        env=clean_env({}),
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    for expected in ("terraform_data.folder", "api.apply", "answers 200", "<h1>Hello"):
        assert expected in done.stdout + done.stderr
    assert list(tmp_path.rglob("page-*")) == []


def test_a_port_in_use_is_named_with_the_fix(dev: Path) -> None:
    url = json.loads((dev / ".exclave" / "dev.json").read_text())["control_url"]
    port = url.rpartition(":")[2]

    done = run(dev, "server", "--data", str(dev / "other"), "--control-port", port, check=False)

    assert done.returncode in {1, 2}
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "EXCLAVE_CONTROL_PORT" in done.stderr


def test_ctrl_c_stops_everything_and_the_login_elsewhere_is_explained(tmp_path: Path) -> None:
    argv = [*exclave(), "dev", "--control-port", "0", "--runner-port", "0"]
    argv += ["--data", str(tmp_path / "elsewhere")]
    with (tmp_path / "dev.log").open("ab") as out:
        process = subprocess.Popen(argv, cwd=tmp_path, env=clean_env({}), stdout=out, stderr=out)
    wait_until(lambda: "Serving until" in (tmp_path / "dev.log").read_text(), "it serves")

    process.send_signal(signal.SIGINT)

    assert process.wait(30) == 0
    left = subprocess.run(
        ["pgrep", "-f", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert left.stdout == ""
    login = json.loads((tmp_path / "elsewhere" / "dev.json").read_text())
    said = (tmp_path / "dev.log").read_text()
    assert f"set EXCLAVE_URL={login['control_url']} and EXCLAVE_TOKEN" in said
    assert login["token"] not in said
