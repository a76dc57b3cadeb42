"""Builds end to end: a real server, a real build runner, the real git, the embedded registry."""

import asyncio
import base64
import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from exclave.base.archives import unpack_archive
from exclave.client.oci.client import OciClient
from tests.faults.site import KillableProcess, clean_env, exclave, wait_until
from tests.support.command_line import run_exclave
from tests.support.git import GitServer, Repo, make_repo, serve_git

COMPONENT = """
name = "{name}"
type = "terraform_module"
terraform_version = "1.11.3"

[{kind}]
repo = "{repo}"
directory = "{directory}"
branch = "main"
"""

APP = {
    "metadata.toml": 'version = "v2"\n',
    "runner.toml": 'runner_type = "local"\n',
    "sandbox.toml": """
terraform_version = "1.11.3"
[public_repo]
repo = "."
directory = "infra/base"
branch = "main"
""",
    "infra/base/main.tf": "# base\n",
    "infra/web/main.tf": "# web\n",
}


class Site:
    """A directory with an app, and `exclave dev` at work beside it."""

    def __init__(self, folder: Path, server: GitServer, repo: Repo) -> None:
        self.folder = folder
        self.server = server
        self.repo = repo
        self.app = folder / "app"

    def run(self, *words: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        env = clean_env({"CONFIG": str(self.folder / "none.toml")})
        done = run_exclave(*words, folder=self.folder, env=env)
        assert not check or done.returncode == 0, (words, done.stdout, done.stderr)
        return done

    def ask(self, *words: str) -> Any:
        return json.loads(self.run(*words, "--json").stdout)

    def write(self, files: Mapping[str, str]) -> None:
        for name, content in files.items():
            path = self.app / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    def add(self, name: str, repo: str, directory: str, kind: str = "public_repo") -> None:
        text = COMPONENT.format(name=name, repo=repo, directory=directory, kind=kind)
        self.write({f"components/{name}.toml": text})

    def sync(self) -> None:
        self.run("apps", "sync", "app", "--app", "demo")

    def builds(self, **wanted: str) -> list[dict[str, Any]]:
        words = [word for name, value in wanted.items() for word in (f"--{name}", value)]
        items: list[dict[str, Any]] = self.ask("builds", "list", *words)["items"]
        return items

    def await_builds(self, count: int) -> dict[str, dict[str, Any]]:
        """Wait until that many builds have ended; answer the newest of each part."""

        def are_done() -> bool:
            return sum(one["finished_at"] is not None for one in self.builds()) >= count

        wait_until(are_done, f"{count} builds have ended")
        return {one["part"]: one for one in reversed(self.builds())}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    repo = make_repo(tmp_path / "git" / "public", {"db/main.tf": "# db", "db/run.sh": "#!/bin/sh"})
    make_repo(tmp_path / "git" / "private", {"main.tf": "# private"})
    folder = tmp_path / "vendor"
    folder.mkdir()
    env = clean_env({"GIT_PROTOCOLS": "http", "GIT_ALLOW_PRIVATE": "true"})
    argv = [*exclave(), "dev", "--control-port", "0", "--runner-port", "0"]
    process = KillableProcess(argv, env, tmp_path / "dev.log")
    with serve_git(tmp_path / "git") as server, (tmp_path / "dev.log").open("ab") as out:
        process.running = subprocess.Popen(
            argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
        try:
            said = tmp_path / "dev.log"
            wait_until(lambda: "Serving until" in said.read_text(), "exclave dev serves")
            made = Site(folder, server, repo)
            made.write(APP)
            made.run("apps", "create", "demo")
            yield made
        finally:
            process.stop()


def test_parts_are_built_once_from_the_directory_and_from_git(site: Site, tmp_path: Path) -> None:
    site.add("web", ".", "infra/web")
    site.add("db", f"{site.server.url}/public", "db")

    site.sync()
    first = site.await_builds(3)
    site.sync()
    site.write({"infra/other/x.tf": "", "inputs.toml": ""})
    site.sync()

    assert {one["state"] for one in first.values()} == {"succeeded"}, first
    assert len(site.builds()) == 3, "an unchanged folder is not built again"
    assert first["component:db"]["commit"] == site.repo.git("rev-parse", "HEAD")
    assert asyncio.run(look(site, first["component:db"], tmp_path)) == {"main.tf", "run.sh"}


async def look(site: Site, build: dict[str, Any], folder: Path) -> set[str]:
    """Pull an artifact as anybody would, and check what its provenance says."""
    made = site.ask("registry", "token", "--repository", build["repository"])
    org = made["repository"].removesuffix(f"/{build['repository']}")

    async def token() -> str:
        return str(made["password"])

    async with OciClient(f"{made['url']}/{org}", token) as client:
        layer = await client.pull_layer(build["repository"], build["digest"], folder / "layer")
        found = await client.list_referrers(build["repository"], build["digest"])
        assert [one.digest for one in found] == [build["provenance"]]
        assert found[0].artifactType == "application/vnd.in-toto+json"
        signed = await client.pull_layer(build["repository"], found[0].digest, folder / "prov")
    statement = json.loads(base64.b64decode(json.loads(signed.read_bytes())["payload"]))
    assert statement["subject"][0]["digest"]["sha256"] == build["digest"].removeprefix("sha256:")
    resolved = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert resolved[0]["digest"] == {"gitCommit": build["commit"]}
    with layer.open("rb") as data:
        unpack_archive(data, folder / "unpacked")
    return {path.name for path in (folder / "unpacked").iterdir()}


def test_a_new_commit_is_built_when_somebody_asks(site: Site) -> None:
    site.add("db", f"{site.server.url}/public", "db")
    site.sync()
    first = site.await_builds(2)["component:db"]
    site.repo.commit({"README": "beside"})
    beside = site.ask("builds", "create", "demo", "db", "--wait")
    moved = site.repo.commit({"db/main.tf": "# two"})

    site.sync()
    second = site.ask("builds", "create", "demo", "db", "--wait")
    back = site.ask("builds", "create", "demo", "db", "--commit", first["commit"], "--wait")

    assert beside["commit"] != first["commit"]
    assert beside["digest"] == first["digest"], "what is not in the folder does not count"
    assert (second["commit"], second["configs"]) == (moved, [1])
    assert site.ask("builds", "get", second["id"])["configs"] == []
    assert second["digest"] != first["digest"]
    assert (back["digest"], back["configs"]) == (first["digest"], [1])


def test_a_failed_build_tells_component_step_and_line_and_can_be_repeated(site: Site) -> None:
    (site.app / "infra/web/bad.tf").write_bytes(b"# one\n# \xff\n")
    site.add("web", ".", "infra/web")
    site.add("db", f"{site.server.url}/public", "data")
    site.sync()

    failed = site.await_builds(3)
    done = site.run("builds", "create", "demo", "web", "--wait", check=False)
    (site.app / "infra/web/bad.tf").unlink()
    site.sync()
    fixed = site.await_builds(6)

    assert failed["component:web"]["error"].startswith("component `web`, step check: bad.tf:2: ")
    assert "no folder `data`" in failed["component:db"]["error"]
    assert done.returncode == 1
    assert "bad.tf:2" in done.stdout
    assert fixed["component:web"]["state"] == "succeeded"
    log = site.run("builds", "logs", failed["component:web"]["id"]).stdout
    assert "▸ step check" in log
    assert "bad.tf:2" in log


def test_a_private_repository_needs_the_build_runners_credentials(site: Site) -> None:
    site.add("secret", f"{site.server.url}/private", ".", "connected_repo")
    site.sync()
    failed = site.await_builds(2)["component:secret"]
    file = site.folder / ".exclave/runners/build/source-credentials.json"
    held = {"prefix": f"{site.server.url}/private", "username": "git", "password": "tok-s3cret"}
    file.write_text(json.dumps({"credentials": [held]}))
    file.chmod(0o600)

    built = site.ask("builds", "create", "demo", "secret", "--wait")

    assert "source-credentials.json" in failed["error"]
    assert built["state"] == "succeeded"
    log = site.run("builds", "logs", built["id"]).stdout
    assert "tok-s3cret" not in log + json.dumps(built)
