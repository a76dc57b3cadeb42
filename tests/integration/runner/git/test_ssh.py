"""Connected repositories over SSH: the real `ssh`, a real server, strict about host keys."""

from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import pytest

from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason
from tests.integration.runner.git.fetch_kit import Fetch
from tests.support.git import Repo, make_repo
from tests.support.ssh import SshServer, make_key, serve_ssh, write_private
from tests.unit.runner.work_kit import ExecutionHarness


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return make_repo(tmp_path / "git" / "private", {"infra/main.tf": "# one"})


@pytest.fixture
def key() -> asyncssh.SSHKey:
    return make_key()


@pytest.fixture
async def server(key: asyncssh.SSHKey) -> AsyncIterator[SshServer]:
    async with serve_ssh(key) as running:
        yield running


@pytest.fixture
def fetch(tmp_path: Path) -> Fetch:
    return Fetch(ExecutionHarness(tmp_path))


def trust(fetch: Fetch, server: SshServer, key: asyncssh.SSHKey, known: str) -> None:
    fetch.write_credentials(
        {"prefix": f"{server.url}/", "private_key": write_private(key), "known_hosts": known}
    )


async def test_a_repository_is_fetched_with_the_key_of_the_runner(
    fetch: Fetch, server: SshServer, repo: Repo, key: asyncssh.SSHKey
) -> None:
    trust(fetch, server, key, server.known_hosts_line())

    got = await fetch.get(f"{server.url}{repo.path}", directory="infra", connected=True)

    assert got.commit == repo.git("rev-parse", "HEAD")
    assert (got.root / "infra" / "main.tf").read_text() == "# one"
    assert server.commands == [f"git-upload-pack '{repo.path}'"] * 2
    assert not (fetch.bench.folder / "ssh-key").exists()
    assert write_private(key).splitlines()[1] not in fetch.texts()


async def test_a_server_that_nobody_vouches_for_is_refused(
    fetch: Fetch, server: SshServer, repo: Repo, key: asyncssh.SSHKey
) -> None:
    trust(fetch, server, key, "other.example ssh-ed25519 AAAA")

    with pytest.raises(WorkFailed, match="is not in `known_hosts`") as caught:
        await fetch.get(f"{server.url}{repo.path}", connected=True)

    assert caught.value.reason is Reason.ACCESS_DENIED
    assert "ssh-keyscan" in caught.value.message
    assert server.commands == []


async def test_a_server_with_another_key_than_before_is_refused(
    fetch: Fetch, server: SshServer, repo: Repo, key: asyncssh.SSHKey
) -> None:
    trust(fetch, server, key, server.known_hosts_line(make_key()))

    with pytest.raises(WorkFailed, match="another key than `known_hosts`") as caught:
        await fetch.get(f"{server.url}{repo.path}", connected=True)

    assert caught.value.reason is Reason.ACCESS_DENIED
    assert server.commands == []


async def test_a_key_that_the_server_does_not_know_opens_nothing(
    fetch: Fetch, server: SshServer, repo: Repo
) -> None:
    trust(fetch, server, make_key(), server.known_hosts_line())

    with pytest.raises(WorkFailed, match="credentials that may read it") as caught:
        await fetch.get(f"{server.url}{repo.path}", connected=True)

    assert caught.value.reason is Reason.ACCESS_DENIED
    assert server.commands == []
