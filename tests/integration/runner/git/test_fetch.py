"""Fetching with the real git, from files and from a real HTTP server."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from exclave.runner.git.fetch import GitSettings
from exclave.runner.git.urls import Rewrite
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.outcomes import Stopped, WorkFailed
from exclave.wire.jobs import Reason
from exclave.wire.logs import Stream
from tests.integration.runner.git.fetch_kit import Fetch
from tests.support.git import GitServer, Repo, make_repo, serve_git
from tests.unit.runner.work_kit import ExecutionHarness


@pytest.fixture
def bench(tmp_path: Path) -> ExecutionHarness:
    return ExecutionHarness(tmp_path)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return make_repo(tmp_path / "git" / "public", {"infra/db/main.tf": "# one", "README": "x"})


@pytest.fixture
def server(repo: Repo) -> Iterator[GitServer]:
    with serve_git(repo.path.parent) as running:
        yield running


async def test_a_branch_a_tag_and_a_commit_are_resolved_once(
    bench: ExecutionHarness, repo: Repo, tmp_path: Path
) -> None:
    first = repo.git("rev-parse", "HEAD")
    repo.git("tag", "v1")
    repo.git("tag", "-a", "v1-annotated", "-m", "one")
    second = repo.commit({"infra/db/main.tf": "# two"})
    found = {}

    for number, ref in enumerate(["main", "v1", "v1-annotated", first, "HEAD", "refs/tags/v1"]):
        (tmp_path / str(number)).mkdir()
        got = await Fetch(ExecutionHarness(tmp_path / str(number))).get(repo.url, ref)
        found[ref] = (got.commit, (got.root / "infra/db/main.tf").read_text())

    one, two = (first, "# one"), (second, "# two")
    assert found == {
        "main": two,
        "v1": one,
        "v1-annotated": one,
        first: one,
        "HEAD": two,
        "refs/tags/v1": one,
    }


async def test_a_pinned_commit_is_fetched_whatever_the_branch_says(
    bench: ExecutionHarness, repo: Repo
) -> None:
    first = repo.git("rev-parse", "HEAD")
    repo.commit({"infra/db/main.tf": "# two"})

    got = await Fetch(bench).get(repo.url, commit=first)

    assert (got.root / "infra/db/main.tf").read_text() == "# one"


async def test_only_the_wanted_folder_and_only_one_commit_arrives(
    bench: ExecutionHarness, repo: Repo, server: GitServer
) -> None:
    repo.commit({"infra/db/main.tf": "# two"})

    got = await Fetch(bench).get(f"{server.url}/public", directory="infra/db")

    assert {path.name for path in got.root.iterdir()} == {".git", "infra"}
    assert Repo(got.root).git("rev-list", "--all", "--count", got.commit) == "1"


async def test_a_branch_wins_over_a_tag_of_the_same_name_and_the_log_says_so(
    bench: ExecutionHarness, repo: Repo
) -> None:
    repo.git("tag", "twice")
    repo.git("checkout", "--quiet", "-b", "twice")
    commit = repo.commit({"README": "y"})
    fetch = Fetch(bench)

    got = await fetch.get(repo.url, "twice")

    assert got.commit == commit
    assert "there is a tag `twice` too: the branch is taken" in fetch.texts()


async def test_private_repositories_open_with_credentials_that_show_nowhere(
    bench: ExecutionHarness, repo: Repo, server: GitServer
) -> None:
    repo.path.rename(repo.path.parent / "private")
    fetch = Fetch(bench)
    fetch.write_credentials(
        {"prefix": "http://127.0.0.1", "username": "git", "password": "wrong-one"},
        {"prefix": f"{server.url}/private", "username": "git", "password": "tok-s3cret"},
    )

    await fetch.get(f"{server.url}/private", connected=True)

    assert any(header for _, header in server.requests)
    left = b"".join(path.read_bytes() for path in bench.folder.rglob("*") if path.is_file())
    assert b"tok-s3cret" not in left
    assert not (bench.folder / "askpass").exists()
    assert "tok-s3cret" not in fetch.texts()


async def test_public_sources_never_get_credentials(
    bench: ExecutionHarness, repo: Repo, server: GitServer
) -> None:
    repo.path.rename(repo.path.parent / "private")
    fetch = Fetch(bench)
    fetch.write_credentials({"prefix": f"{server.url}/", "password": "tok-s3cret"})

    with pytest.raises(WorkFailed) as caught:
        await fetch.get(f"{server.url}/private")

    assert caught.value.reason is Reason.ACCESS_DENIED
    assert {header for _, header in server.requests} == {""}


@pytest.mark.parametrize(
    ("entries", "mode", "reason"),
    [
        ([], 0o600, Reason.SECRET_MISSING),
        ([{"prefix": "https://elsewhere.example/", "password": "x"}], 0o600, Reason.SECRET_MISSING),
        ([{"prefix": "http://127.0.0.1:1/", "password": "x"}], 0o644, Reason.SECRET_MISSING),
        ([{"wrong": "tok-s3cret"}], 0o600, Reason.SECRET_MISSING),
    ],
)
async def test_missing_or_loose_credentials_stop_the_fetch(
    bench: ExecutionHarness, entries: list[dict[str, str]], mode: int, reason: Reason
) -> None:
    fetch = Fetch(bench)
    fetch.write_credentials(*entries)
    fetch.credentials.chmod(mode)

    with pytest.raises(WorkFailed) as caught:
        await fetch.get("http://127.0.0.1:1/private", connected=True)

    assert caught.value.reason is reason
    assert "tok-s3cret" not in caught.value.message


@pytest.mark.parametrize(
    ("path", "ref", "directory", "reason", "words"),
    [
        ("public", "nothing", ".", Reason.SOURCE_INVALID, "no branch or tag `nothing`"),
        ("public", "abcdef0", ".", Reason.SOURCE_INVALID, "written in full"),
        ("public", "0" * 40, ".", Reason.SOURCE_UNAVAILABLE, "not in the repository"),
        ("public", "main", "infra/no", Reason.SOURCE_INVALID, "no folder `infra/no`.*`infra/db`"),
        ("absent", "main", ".", Reason.SOURCE_UNAVAILABLE, "no such repository"),
        ("moved", "main", ".", Reason.SOURCE_UNAVAILABLE, "has moved"),
        ("private", "main", ".", Reason.ACCESS_DENIED, "private"),
    ],
)
async def test_failures_say_what_to_do(
    bench: ExecutionHarness,
    server: GitServer,
    *,
    path: str,
    ref: str,
    directory: str,
    reason: Reason,
    words: str,
) -> None:
    with pytest.raises(WorkFailed, match=words) as caught:
        await Fetch(bench).get(f"{server.url}/{path}", ref, directory)

    assert caught.value.reason is reason


async def test_the_network_is_given_a_second_chance(
    bench: ExecutionHarness, server: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exclave.runner.git.fetch._PAUSES_S", (0.0, 0.0))

    with pytest.raises(WorkFailed) as caught:
        await Fetch(bench).get(f"{server.url}/broken")

    assert caught.value.reason is Reason.NETWORK
    assert len(server.requests) == 3


async def test_a_stop_ends_the_fetch(bench: ExecutionHarness, repo: Repo) -> None:
    bench.stop.request(Reason.CANCELLED, 1.0)

    with pytest.raises(Stopped):
        await Fetch(bench).get(repo.url)


async def test_hooks_filters_and_submodules_do_nothing(
    bench: ExecutionHarness, repo: Repo, tmp_path: Path
) -> None:
    trap = tmp_path / "trap"
    inner = make_repo(tmp_path / "git" / "inner", {"x": "y"})
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", inner.url, "sub")
    repo.commit({".gitattributes": "* filter=evil\n", "infra/db/main.tf": "# three"})
    hooks = repo.path / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-checkout", "post-merge"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {trap}\n")
        (hooks / name).chmod(0o755)
    fetch = Fetch(bench)

    got = await fetch.get(repo.url)

    assert not trap.exists()
    assert (got.root / "infra/db/main.tf").read_text() == "# three"
    assert list((got.root / "sub").iterdir()) == []
    assert "submodule `sub` is left out" in fetch.texts()


async def test_the_users_own_git_configuration_does_not_count(
    bench: ExecutionHarness, repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text(
        f'[url "file:///nowhere/"]\n\tinsteadOf = {repo.url}\n[core]\n\thooksPath = /tmp\n'
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    make_repo(tmp_path / "outer").git("config", "url.file:///nowhere/.insteadOf", repo.url)

    assert (await Fetch(bench).get(repo.url)).commit == repo.git("rev-parse", "HEAD")


async def test_the_longest_rewrite_rule_wins(bench: ExecutionHarness, repo: Repo) -> None:
    rules = (
        Rewrite("https://github.com/", "file:///nowhere/"),
        Rewrite("https://github.com/acme/", f"file://{repo.path.parent}/"),
    )
    settings = GitSettings(rewrites=rules, protocols=frozenset({"file"}))

    got = await Fetch(bench, settings).get("acme/public")

    assert got.url == repo.url


async def test_private_addresses_are_refused_before_git_runs(
    bench: ExecutionHarness, server: GitServer
) -> None:
    settings = GitSettings(protocols=frozenset({"http", "https", "ssh"}))

    for url in (f"{server.url}/public", "http://localhost/x", "https://[::1]/x", "git@10.0.0.7:x"):
        with pytest.raises(WorkFailed, match="private address") as caught:
            await Fetch(bench, settings).get(url)
        assert caught.value.reason is Reason.SOURCE_INVALID

    assert server.requests == []


@pytest.mark.parametrize("proxy", ["", "http://127.0.0.1:9"])
async def test_metadata_servers_are_refused_even_where_private_addresses_are_allowed(
    bench: ExecutionHarness, proxy: str
) -> None:
    children = ChildSettings(path=os.environ["PATH"], proxy=proxy)

    for url in ("http://169.254.169.254/x", "https://[fd00:ec2::254]/x", "http://2852039166/x"):
        with pytest.raises(WorkFailed, match=r"credentials|metadata server") as caught:
            await Fetch(bench, children=children).get(url)
        assert caught.value.reason is Reason.SOURCE_INVALID


async def test_git_uses_the_very_address_that_was_judged(
    bench: ExecutionHarness, server: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that answers differently the second time gains nothing."""
    asked: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(f"{host}:{port}")
        return ["127.0.0.1"]

    monkeypatch.setattr("exclave.client.reach.is_public", lambda _: True)
    settings = GitSettings(protocols=frozenset({"http"}))

    got = await Fetch(bench, settings, resolve=resolve).get(
        f"http://code.example:{server.port}/public"
    )

    assert asked == [f"code.example:{server.port}"]
    assert got.commit
    assert server.requests


async def test_unwanted_protocols_are_refused(bench: ExecutionHarness, repo: Repo) -> None:
    for url in (repo.url, "http://code.example/x"):
        with pytest.raises(WorkFailed, match="EXCLAVE_GIT_PROTOCOLS"):
            await Fetch(bench, GitSettings()).get(url)


async def test_ssh_without_a_key_says_where_it_belongs(bench: ExecutionHarness) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        assert (host, port) == ("code.example", 22)
        return ["10.0.0.7"]

    with pytest.raises(WorkFailed, match="private_key"):
        await Fetch(bench, resolve=resolve).get("git@code.example:acme/x")


async def test_the_log_shows_what_was_fetched(bench: ExecutionHarness, repo: Repo) -> None:
    fetch = Fetch(bench)

    got = await fetch.get(repo.url)

    assert bench.texts(Stream.SYSTEM)[:2] == [
        f"refs/heads/main is commit {got.commit}",
        f"fetching commit {got.commit} of {repo.url}",
    ]


FAKE_SSH = """#!/bin/sh
printf '%s\\n' "$@" > {folder}/ssh-args
for word in "$@"; do case "$word" in IdentityFile=*) cat "${{word#*=}}" > {folder}/ssh-key;; esac; done
for last; do :; done
exec sh -c "$last"
"""


async def test_ssh_gets_its_key_its_known_hosts_and_the_judged_address(
    bench: ExecutionHarness, repo: Repo, tmp_path: Path
) -> None:
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(FAKE_SSH.format(folder=tmp_path))
    ssh.chmod(0o755)

    async def resolve(host: str, port: int) -> Sequence[str]:
        assert (host, port) == ("code.example", 2222)
        return ["140.82.121.4"]

    children = ChildSettings(path=f"{ssh.parent}:{os.environ['PATH']}")
    fetch = Fetch(bench, GitSettings(), resolve=resolve, children=children)
    fetch.write_credentials(
        {
            "prefix": "ssh://git@code.example:2222/",
            "private_key": "KEY-OF-TEST\n",
            "known_hosts": "[code.example]:2222 ssh-ed25519 AAAA",
        }
    )

    await fetch.get(f"ssh://git@code.example:2222{repo.path}", connected=True)

    args = (tmp_path / "ssh-args").read_text().splitlines()
    for option in (
        "HostName=140.82.121.4",
        "StrictHostKeyChecking=yes",
        "BatchMode=yes",
        "HostKeyAlias=[code.example]:2222",
        "IdentitiesOnly=yes",
    ):
        assert option in args
    assert (tmp_path / "ssh-key").read_text() == "KEY-OF-TEST\n"
    assert not (bench.folder / "ssh-key").exists()
    assert "KEY-OF-TEST" not in fetch.texts()


async def test_a_missing_git_is_a_missing_tool(
    bench: ExecutionHarness, repo: Repo, tmp_path: Path
) -> None:
    fetch = Fetch(bench, children=ChildSettings(path=str(tmp_path)))

    with pytest.raises(WorkFailed) as caught:
        await fetch.get(repo.url)

    assert caught.value.reason is Reason.TOOL_MISSING
