"""What children are given: an environment made from nothing, and secrets that the runner holds."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from exclave.runner.jobs.environment import ChildSettings, build_env
from exclave.runner.jobs.executor import StopRequest
from exclave.runner.jobs.workspace import Workspace
from exclave.runner.outcomes import WorkFailed
from exclave.runner.secrets.store import FileSecrets
from exclave.wire.jobs import Reason
from tests.support.scripted_api import Reply, ScriptedApi


def test_nothing_is_inherited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of the runner")
    monkeypatch.setenv("EXCLAVE_TOKEN", "of the runner")

    env = build_env(ChildSettings(path="/bin"), Workspace(tmp_path))

    assert env == {
        "PATH": "/bin",
        "LANG": "C.UTF-8",
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "tmp"),
    }


def test_later_layers_win_but_never_over_names_of_the_runner(tmp_path: Path) -> None:
    env = build_env(
        ChildSettings(),
        Workspace(tmp_path),
        {"A": "job", "B": "job", "EXCLAVE_EXECUTION": "another"},
        {"B": "step", "EXCLAVE_OUTPUTS": "/etc/passwd"},
    )

    assert (env["A"], env["B"]) == ("job", "step")
    assert not any(name.startswith("EXCLAVE_") for name in env)


def test_one_proxy_and_one_ca_setting_reach_every_tool(tmp_path: Path) -> None:
    settings = ChildSettings(
        proxy="http://proxy:3128", no_proxy="localhost,10.0.0.0/8", ca_bundle=Path("/etc/ca.pem")
    )

    env = build_env(settings, Workspace(tmp_path))

    assert {env[name] for name in ("HTTPS_PROXY", "https_proxy")} == {"http://proxy:3128"}
    assert {env[name] for name in ("NO_PROXY", "no_proxy")} == {"localhost,10.0.0.0/8,127.0.0.1"}
    names = "SSL_CERT_FILE REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO AWS_CA_BUNDLE"
    assert {env[name] for name in (*names.split(), "NODE_EXTRA_CA_CERTS")} == {"/etc/ca.pem"}


async def test_what_a_job_has_at_the_runner_is_reached_without_the_proxy(tmp_path: Path) -> None:
    env = build_env(ChildSettings(proxy="http://127.0.0.1:9"), Workspace(tmp_path))
    async with ScriptedApi({"/token": [Reply(200, b"credential")]}) as runner:
        ask = f"import urllib.request as u; print(u.urlopen('{runner.url}/token').read())"
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", ask), env=env, stdout=asyncio.subprocess.PIPE
        )
        printed, _ = await child.communicate()

    assert printed.strip() == b"b'credential'"


def write_secrets(folder: Path, content: object, mode: int = 0o600) -> Path:
    file = folder / "secrets.json"
    file.write_text(json.dumps(content))
    file.chmod(mode)
    return file


async def test_secrets_are_read_by_name_and_do_not_print(tmp_path: Path) -> None:
    store = FileSecrets(write_secrets(tmp_path, {"db": "hunter2", "other": "x"}))

    found = await store.fetch(["db", "db"])

    assert found["db"].reveal() == "hunter2"
    assert "hunter2" not in repr(found)
    assert list(found) == ["db"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
async def test_a_secrets_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    store = FileSecrets(write_secrets(tmp_path, {"db": "hunter2"}, mode))

    with pytest.raises(WorkFailed, match="chmod 600"):
        await store.fetch(["db"])


@pytest.mark.parametrize("content", [["db"], {"db": 1}, "db"])
async def test_a_malformed_secrets_file_is_refused(tmp_path: Path, content: object) -> None:
    with pytest.raises(WorkFailed, match="JSON object of texts"):
        await FileSecrets(write_secrets(tmp_path, content)).fetch(["db"])


async def test_every_missing_secret_is_named(tmp_path: Path) -> None:
    store = FileSecrets(write_secrets(tmp_path, {"a": "x"}))

    with pytest.raises(WorkFailed, match="`b`, `c`") as failed:
        await store.fetch(["c", "a", "b"])

    assert failed.value.reason is Reason.SECRET_MISSING


async def test_without_a_file_only_work_without_secrets_runs(tmp_path: Path) -> None:
    assert await FileSecrets(None).fetch([]) == {}
    for store in (FileSecrets(None), FileSecrets(tmp_path / "missing")):
        with pytest.raises(WorkFailed):
            await store.fetch(["a"])


async def test_the_first_wish_to_stop_wins() -> None:
    stop = StopRequest()

    stop.request(Reason.DEADMAN, 5)
    stop.request(Reason.CANCELLED, 1)
    await stop.wait()

    assert (stop.reason, stop.grace_s) == (Reason.DEADMAN, 5)
