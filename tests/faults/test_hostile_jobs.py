"""A job that means harm, under a real runner: what it can reach, and what it leaves behind."""

import base64
import os
import random
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from exclave.runner.processes.cgroups import find_cgroups
from tests.faults.site import KillableProcess, Site, make_site, wait_until

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root can start jobs as others"
)
ENDED = {"succeeded", "failed", "cancelled"}
ATTACK = """
try() {{ name=$1; shift; if "$@" >/dev/null 2>&1; then echo "GOT $name"; else echo "no $name"; fi; }}
try key cat {data}/identity.key
try folder ls {data}
try outbox ls {data}/outbox
try audit sh -c 'echo x >> {data}/audit.jsonl'
try secrets cat {secrets}
try environ cat /proc/{pid}/environ
try memory sh -c ': < /proc/{pid}/mem'
try files ls /proc/{pid}/fd
try signal kill -0 {pid}
try spool ls $HOME/../../log
try record sh -c 'echo x > $HOME/../../begun'
try neighbours ls $HOME/../../..
try neighbour sh -c 'echo x > {victim}/tmp/mine'
try enter ls {victim}
try neighbour-signal kill -0 {victim_pid}
try privileges sh -c 'grep -q "NoNewPrivs:.0" /proc/self/status'
try groups sh -c 'grep -qE "^Groups:.*[0-9]" /proc/self/status'
try capabilities sh -c 'grep CapEff /proc/self/status | grep -qv 0000000000000000'
ln -sf {data}/identity.key $EXCLAVE_OUTPUTS
"""
HIDE = "env -i setsid -f sleep {}; (env -i setsid -f sh -c 'env -i setsid -f sleep {}; sleep {}')"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server with an install, for all tests."""
    site = make_site(tmp_path_factory.mktemp("site"))
    try:
        site.begin_servers()
        site.install = site.post("/v1/installs", {"name": "prod"})["id"]
        yield site
    finally:
        site.end()


@pytest.fixture
def site(servers: Site, tmp_path: Path) -> Iterator[Site]:
    """The site with a new runner, in a folder of the test."""
    servers.runner = servers.start_runner(str(tmp_path / "runner"), servers.install)
    yield servers
    for runner in servers.runners:
        runner.stop()
    servers.runners.clear()


@pytest.fixture
def isolated(site: Site, tmp_path: Path) -> Iterator[KillableProcess]:
    """Start the runner again with a user for each job."""
    assert site.runner is not None
    wait_until((tmp_path / "runner" / "identity.json").exists, "the runner is enrolled")
    site.runner.stop()
    secrets = tmp_path / "secrets.json"
    secrets.write_text('{"canary": "kept by root"}')
    secrets.chmod(0o600)
    first = random.randrange(40_000, 60_000, 8)
    jobs = Path(f"/tmp/exclave-jobs-{os.getpid()}-{first}")  # noqa: S108 - where others get to
    site.runner.env |= {
        "EXCLAVE_RUN_AS": f"{first}-{first + 7}",
        "EXCLAVE_JOBS_FOLDER": str(jobs),
        "EXCLAVE_SECRETS_FILE": str(secrets),
    }
    site.runner.start()
    yield site.runner
    shutil.rmtree(jobs, ignore_errors=True)


def run_job(site: Site, script: str, *, mutating: bool = False) -> str:
    spec = {"kind": "script", "steps": [{"name": "work", "script": script}]}
    lanes = ["component:a"] if mutating else []
    step = {"name": "step", "needs": [], "mutating": mutating, "lanes": lanes, "job": spec}
    body = {"name": "hostile", "queue_id": site.install, "steps": [step]}
    return str(site.post("/v1/workflows", body)["id"])


def read_job(site: Site, workflow: str) -> dict[str, Any]:
    (listed,) = site.get("/v1/jobs", workflow_id=workflow, limit=10)["items"]
    return dict(site.get(f"/v1/jobs/{listed['id']}"))


def wait_for_end(site: Site, workflow: str) -> dict[str, Any]:
    def ended() -> Any:
        shown = read_job(site, workflow)
        return shown if shown["state"] in {*ENDED, "lost"} else None

    return dict(wait_until(ended, f"the job of {workflow} ends"))


def read_texts(site: Site, workflow: str) -> list[str]:
    job = wait_for_end(site, workflow)
    records = site.read_log(job["id"], job["executions"][-1]["id"])
    return [record["text"] for record in records]


def wait_for_text(site: Site, workflow: str, prefix: str) -> str:
    def look() -> str | None:
        found = site.get("/v1/jobs", workflow_id=workflow, limit=10)["items"]
        job = site.get(f"/v1/jobs/{found[0]['id']}") if found else {"executions": []}
        if not job["executions"]:
            return None
        records = site.read_log(job["id"], job["executions"][-1]["id"])
        texts = [one["text"] for one in records if one["text"].startswith(prefix)]
        return texts[0] if texts else None

    return str(wait_until(look, f"a line that begins with {prefix}"))


def count_sleepers(seconds: int) -> int:
    """Count living processes by their very command line."""
    wanted = f"sleep\0{seconds}\0".encode()
    found = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found += (folder / "cmdline").read_bytes() == wanted
        except OSError:
            continue
    return found


def test_a_job_gets_at_nothing_of_the_runner_or_of_another_job(
    site: Site, isolated: KillableProcess, tmp_path: Path
) -> None:
    assert isolated.running is not None
    victim = run_job(
        site, "echo at $(dirname $HOME) $$; while [ ! -e $HOME/end ]; do sleep 0.1; done"
    )
    _, place, pid = wait_for_text(site, victim, "at ").split()
    attack = ATTACK.format(
        data=tmp_path / "runner",
        secrets=tmp_path / "secrets.json",
        pid=isolated.running.pid,
        victim=place,
        victim_pid=pid,
    )

    attacker = run_job(site, attack)
    texts = read_texts(site, attacker)
    job = wait_for_end(site, attacker)
    (Path(place) / "home" / "end").touch()

    tried = [text for text in texts if text.startswith(("no ", "GOT "))]
    assert tried == [line for line in tried if line.startswith("no ")]
    assert len(tried) == ATTACK.count("\ntry ")
    assert (job["state"], job["executions"][-1]["reason"]) == ("failed", "outputs_invalid")
    assert wait_for_end(site, victim)["state"] == "succeeded"


def restart_with(site: Site, tmp_path: Path, **env: str) -> Path:
    """Start another runner in place of the first, with a secret; return its data folder."""
    assert site.runner is not None
    site.runner.stop()
    secrets = tmp_path / "secrets.json"
    secrets.write_text('{"db": "S3CRETVALUE99"}')
    secrets.chmod(0o600)
    site.start_runner(str(tmp_path / "second"), site.install, SECRETS_FILE=str(secrets), **env)
    wait_until((tmp_path / "second" / "identity.json").exists, "the runner is enrolled")
    return tmp_path / "second"


def test_jobs_of_a_runner_that_is_root_are_isolated_without_any_setting(
    site: Site, tmp_path: Path
) -> None:
    data = restart_with(site, tmp_path, RUN_AS="")

    one = run_job(site, f"id -u; cat {tmp_path}/secrets.json || cat {data}/identity.key || pwd")
    texts = read_texts(site, one)

    first, _, last = (data / "uids").read_text().strip().partition("-")
    (uid,) = [int(text) for text in texts if text.isdecimal()]
    assert int(first) <= uid <= int(last)
    assert sum("Permission denied" in text for text in texts) == 2
    (place,) = [Path(text) for text in texts if text.startswith("/var/lib/exclave/jobs/")]
    wait_until(lambda: not place.exists(), "the runner has removed the job's folder")
    site.runners[-1].stop()  # it may still be removing what was beside that folder
    shutil.rmtree(place.parents[3])


def test_a_job_that_is_not_isolated_shows_nothing_that_the_runner_holds(
    site: Site, tmp_path: Path
) -> None:
    data = restart_with(site, tmp_path)
    key = (data / "identity.key").read_bytes()

    shown = run_job(
        site,
        f"cat {tmp_path}/secrets.json; echo; base64 {data}/identity.key; cat {data}/identity.key;"
        f" echo; od -An -tx1 {data}/identity.key; cat {tmp_path}/secrets.json > $EXCLAVE_OUTPUTS;"
        " cp $EXCLAVE_OUTPUTS /dev/stderr",
    )
    text = "\n".join(read_texts(site, shown))
    job = wait_for_end(site, shown)

    assert '{"db":"***"}' in text.replace(" ", "")
    assert "S3CRETVALUE99" not in f"{text}{job}"
    assert base64.b64encode(key).decode()[:12] not in text
    assert key[:16].hex(" ") not in text
    assert job["state"] == "succeeded", job
    assert "jobs_not_isolated" in (tmp_path / "second.log").read_text()


def test_what_hides_from_a_job_that_fails_ends_with_it(site: Site) -> None:
    seconds = random.randrange(10_000, 99_000, 3)
    names = (seconds, seconds + 1, seconds + 2)

    one = run_job(site, f"{HIDE.format(*names)}; sleep 0.3; exit 7")
    assert wait_for_end(site, one)["state"] == "failed"

    assert [count_sleepers(name) for name in names] == [0, 0, 0]


SERVICE = "env -i setsid -f sleep {} >/dev/null 2>&1; sleep 0.3"


def test_a_service_may_outlive_the_job_that_started_it_and_succeeded(site: Site) -> None:
    seconds = random.randrange(10_000, 99_000, 3)

    one = run_job(site, f"{SERVICE.format(seconds)}; pgrep -nxf 'sleep {seconds}'")
    assert wait_for_end(site, one)["state"] == "succeeded"

    assert count_sleepers(seconds) == 1
    os.kill(int(read_texts(site, one)[-1]), signal.SIGKILL)


def test_where_users_keep_jobs_apart_nothing_outlives_its_job(
    site: Site, isolated: KillableProcess
) -> None:
    seconds = random.randrange(10_000, 99_000, 3)

    one = run_job(site, SERVICE.format(seconds))
    assert wait_for_end(site, one)["state"] == "succeeded"

    assert isolated.running is not None
    assert count_sleepers(seconds) == 0


def test_what_hides_from_a_killed_runner_ends_when_it_is_back(
    site: Site, isolated: KillableProcess
) -> None:
    seconds = random.randrange(10_000, 99_000, 3)
    names = (seconds, seconds + 1, seconds + 2)
    hidden = run_job(site, f"{HIDE.format(*names)}; echo hidden; sleep 600", mutating=True)
    wait_for_text(site, hidden, "hidden")
    assert [count_sleepers(name) for name in names] == [1, 1, 1]

    isolated.kill9()
    isolated.start()
    wait_until(lambda: not any(count_sleepers(name) for name in names), "the sleepers are ended")

    execution = read_job(site, hidden)["executions"][-1]["id"]
    base = find_cgroups()
    if base is not None:
        wait_until(lambda: not (base / f"exclave-{execution}").exists(), "its cgroup is removed")
    assert read_job(site, hidden)["state"] != "succeeded"
