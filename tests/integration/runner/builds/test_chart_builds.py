"""Charts become artifacts that Helm itself can pull: from the app, from git, from repositories."""

import asyncio
import base64
import gzip
import json
import os
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from exclave.base.secrets import Secret
from exclave.client.oci.client import Login, OciClient
from exclave.runner.builds.recipe import Registry
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.logs import Stream
from exclave.wire.runner import Outcome
from tests.e2e.test_registry_clients import Live, live
from tests.integration.runner.executors.build_kit import Site, upload, uploaded
from tests.support.charts import ChartRepository, chart_files, serve_charts
from tests.support.git import make_repo
from tests.support.kubernetes_tools import need_helm

__all__ = ["live"]

LOCK = """dependencies:
- name: base
  repository: {url}
  version: {version}
digest: {digest}
generated: "2026-01-01T00:00:00Z"
"""


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[ChartRepository]:
    with serve_charts(tmp_path / "charts") as served:
        yield served


def open_site(folder: Path, archive: bytes = b"", registry: Registry | None = None) -> Site:
    return Site(folder, archive, registry=registry, tools=need_helm().parent)


async def build_files(folder: Path, files: Mapping[str, str]) -> tuple[Site, Outcome]:
    archive = upload(folder / "app", files)
    site = open_site(folder / "site", archive)
    return site, await site.build(uploaded(archive, "chart"), type="helm_chart")


async def build_chart(folder: Path, url: str, **source: str) -> tuple[Site, Outcome]:
    site = open_site(folder)
    wanted = {"type": "chart", "url": url, "chart": "web", **source}
    return site, await site.build(wanted, type="helm_chart")


def write_login(file: Path, live: Live, password: str) -> dict[str, str]:
    """Write a file of registry passwords; return the variable that names it to helm."""
    both = base64.b64encode(f"exclave:{password}".encode()).decode()
    file.write_text(json.dumps({"auths": {live.host: {"auth": both}}}))
    return {"HELM_REGISTRY_CONFIG": str(file)}


def list_files(site: Site) -> dict[str, str]:
    """Return the files of the chart that was pushed."""
    data = gzip.decompress(site.fake.pushed[0]["data"])
    with tarfile.open(fileobj=BytesIO(data)) as tar:
        return {
            member.name: member_file.read().decode()
            for member in tar
            if (member_file := tar.extractfile(member)) is not None
        }


def read_materials(site: Site) -> list[dict[str, Any]]:
    envelope = json.loads(site.fake.pushed[-1]["data"])
    statement = json.loads(base64.b64decode(envelope["payload"]))
    materials = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert isinstance(materials, list)
    return materials


def list_contents(site: Site) -> list[str]:
    """Return the package URLs in the bill of materials."""
    document = json.loads(site.fake.pushed[1]["data"])
    return [one["externalRefs"][0]["referenceLocator"] for one in document["packages"][1:]]


async def test_a_chart_of_the_app_directory_has_the_form_that_helm_pulls(
    live: Live, tmp_path: Path
) -> None:
    archive = upload(tmp_path / "app", chart_files(prefix="chart/"))
    login = Login("exclave", Secret(await live.token()))
    async with OciClient(f"{live.running.runner_url}/{live.user.org}", login=login) as registry:
        site = open_site(tmp_path / "site", archive, registry)
        outcome = await site.build(uploaded(archive, "chart"), type="helm_chart")
        again = await open_site(tmp_path / "again", archive, registry).build(
            uploaded(archive, "chart"), type="helm_chart"
        )

    assert outcome.state is OutcomeState.SUCCEEDED, outcome.message
    assert again.outputs["digest"] == outcome.outputs["digest"]
    helm = need_helm()
    config = write_login(tmp_path / "login.json", live, await live.token())
    name = f"oci://{live.name('apps/demo')}@{outcome.outputs['digest']}"
    await live.run(
        *(helm, "pull", name, "--plain-http", "--untar", "-d", str(tmp_path / "out")), env=config
    )
    assert (tmp_path / "out/web/templates/settings.yaml").read_text() == (
        chart_files()["templates/settings.yaml"]
    )


async def test_a_chart_from_git_is_the_same_artifact_as_one_that_is_uploaded(
    tmp_path: Path,
) -> None:
    files = chart_files(prefix="chart/")
    repo = make_repo(tmp_path / "git", files)
    source = {"type": "git", "url": repo.url, "ref": "main", "directory": "chart"}

    _, one = await build_files(tmp_path, files)
    two = await open_site(tmp_path / "two").build(source, type="helm_chart")

    assert one.state is OutcomeState.SUCCEEDED, one.message
    assert one.outputs["digest"] == two.outputs["digest"]
    assert two.outputs["commit"] == repo.git("rev-parse", "HEAD")


async def test_what_helmignore_names_is_left_out_and_links_become_files(tmp_path: Path) -> None:
    files = chart_files(prefix="chart/") | {
        "chart/.helmignore": "*.bak\nnotes/\n",
        "chart/templates/old.yaml.bak": "{{ broken",
        "chart/notes/a.txt": "x",
        "shared/extra.txt": "shared",
    }
    for name, content in files.items():
        path = tmp_path / "app" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    (tmp_path / "app/chart/extra.txt").symlink_to("../shared/extra.txt")

    site, outcome = await build_files(tmp_path, files)

    assert outcome.state is OutcomeState.SUCCEEDED, outcome.message
    packed = list_files(site)
    assert packed["web/extra.txt"] == "shared"
    assert not any("bak" in name or "notes" in name for name in packed)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"chart/x": ""}, "it has no `Chart.yaml`"),
        ({"chart/a/Chart.yaml": ""}, "there are charts in `a`"),
        (chart_files(prefix="chart/") | {"chart/Chart.yaml": "a: [\n"}, "Chart.yaml:2: "),
        (chart_files(prefix="chart/", version="one"), "`version` has to be a semantic version"),
        (chart_files(prefix="chart/", more="type: library\n"), "this is a library chart"),
        (
            chart_files(prefix="chart/")
            | {"chart/big.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"},
            "big.bin:1: the content is in Git LFS",
        ),
        (
            chart_files(prefix="chart/") | {"chart/templates/x.yaml": "a: {{ .Values.x | nope }}"},
            'function "nope" not defined',
        ),
        (
            chart_files(prefix="chart/") | {"chart/templates/x.yaml": "a: {{ .Values.x.y }}"},
            "at <.Values.x.y>: nil pointer evaluating",
        ),
        (
            chart_files(
                prefix="chart/",
                more="dependencies: [{name: x, version: 1.0.0, repository: '@mine'}]\n",
            ),
            "names the repository `@mine` by an alias",
        ),
        (
            chart_files(
                prefix="chart/",
                more="dependencies: [{name: x, version: 1.0.0, repository: 'file://../../..'}]\n",
            ),
            "which is not in the source",
        ),
    ],
)
async def test_a_chart_that_cannot_work_is_refused_with_its_file(
    tmp_path: Path, files: dict[str, str], words: str
) -> None:
    site, outcome = await build_files(tmp_path, files)

    assert (outcome.state, outcome.reason) == (OutcomeState.FAILED, Reason.SOURCE_INVALID)
    assert words in outcome.message
    assert site.fake.pushed == []


async def test_a_link_out_of_the_source_is_refused(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "git", chart_files(prefix="chart/"))
    (repo.path / "chart/passwd").symlink_to("/etc/passwd")
    repo.commit({})
    source = {"type": "git", "url": repo.url, "ref": "main", "directory": "chart"}

    outcome = await open_site(tmp_path / "site").build(source, type="helm_chart")

    assert outcome.reason is Reason.SOURCE_INVALID
    assert "the link `passwd` leads outside of the source" in outcome.message


async def test_a_chart_of_a_repository_is_chosen_by_a_constraint_and_named_in_the_provenance(
    tmp_path: Path, repository: ChartRepository
) -> None:
    for version in ("1.2.3", "1.3.0", "2.0.0", "2.1.0-rc.1"):
        repository.add("web", version)

    site, outcome = await build_chart(tmp_path / "site", repository.url, version="^1.2")
    newest, other = await build_chart(tmp_path / "other", repository.url)

    assert outcome.state is OutcomeState.SUCCEEDED, outcome.message
    assert "version: 1.3.0" in list_files(site)["web/Chart.yaml"]
    assert "version: 2.0.0" in list_files(newest)["web/Chart.yaml"]
    assert any(
        "pinned to 2.0.0 by this build" in text for text in newest.bench.texts(Stream.SYSTEM)
    )
    chart = next(item for item in read_materials(site) if item["name"] == "chart 1.3.0")
    assert chart["uri"] == f"{repository.url}/web-1.3.0.tgz"
    assert len(chart["digest"]["sha256"]) == 64
    assert other.outputs["digest"] != outcome.outputs["digest"]


@pytest.mark.parametrize(
    ("source", "words", "reason"),
    [
        ({"version": "9.9.9"}, "has no version `9.9.9` of `web`; there are 1.2.3", None),
        ({"version": "new"}, "`new` is neither a version nor a constraint", None),
        ({"chart": "db"}, "has no chart `db`", None),
        ({"version": "1.2.4"}, "and the index says", Reason.ARTIFACT_TAMPERED),
    ],
)
async def test_a_chart_that_a_repository_does_not_have_is_refused(
    tmp_path: Path,
    repository: ChartRepository,
    source: dict[str, str],
    words: str,
    reason: Reason | None,
) -> None:
    repository.add("web", "1.2.3")
    repository.add("web", "1.2.4", digest="0" * 64)

    _, outcome = await build_chart(tmp_path / "site", repository.url, **source)

    assert outcome.reason is (reason or Reason.SOURCE_INVALID)
    assert words in outcome.message


async def test_a_private_repository_opens_with_the_credentials_of_the_build_runner(
    tmp_path: Path,
) -> None:
    with serve_charts(tmp_path / "charts", password="swordfish-7") as private:
        private.add("web", "1.2.3")
        _, denied = await build_chart(tmp_path / "none", private.url)
        site = open_site(tmp_path / "site")
        file = tmp_path / "site/source-credentials.json"
        file.touch(mode=0o600)
        entry = {"prefix": private.url, "username": "vendor", "password": "swordfish-7"}
        file.write_text(json.dumps({"credentials": [entry]}))
        source = {"type": "chart", "url": private.url, "chart": "web"}
        outcome = await site.build(source, type="helm_chart")

    assert denied.reason is Reason.ACCESS_DENIED
    assert "source-credentials.json" in denied.message
    assert outcome.state is OutcomeState.SUCCEEDED, outcome.message
    assert not any("swordfish" in text for text in site.bench.texts(Stream.SYSTEM))


async def test_locked_dependencies_are_taken_although_there_are_newer_ones(
    tmp_path: Path, repository: ChartRepository
) -> None:
    needs = f"dependencies:\n- name: base\n  version: ^1.0.0\n  repository: {repository.url}\n"
    repository.add("base", "1.0.0")
    upload(tmp_path / "mine", chart_files(more=needs))
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    helm = [str(need_helm()), "dependency", "update", str(tmp_path / "mine")]
    await asyncio.to_thread(subprocess.run, helm, env=env, check=True, capture_output=True)
    lock = (tmp_path / "mine/Chart.lock").read_text()
    repository.add("base", "1.1.0")
    files = chart_files(prefix="chart/", more=needs) | {"chart/Chart.lock": lock}

    site, outcome = await build_files(tmp_path / "locked", files)
    free = chart_files(prefix="chart/", more=needs)
    newer, one = await build_files(tmp_path / "newer", free)
    _, two = await build_files(tmp_path / "again", free)

    assert outcome.state is OutcomeState.SUCCEEDED, outcome.message
    assert "version: 1.0.0" in list_files(site)["web/charts/base/Chart.yaml"]
    assert "version: 1.1.0" in list_files(newer)["web/charts/base/Chart.yaml"]
    assert any("the chart has no lock file" in text for text in newer.bench.texts(Stream.SYSTEM))
    assert not any("no lock file" in text for text in site.bench.texts(Stream.SYSTEM))
    assert one.outputs["digest"] == two.outputs["digest"]
    names = [material.get("name") for material in read_materials(site)]
    assert "dependency base 1.0.0" in names
    source = quote(repository.url, safe="")
    assert list_contents(site) == [f"pkg:helm/base@1.0.0?repository_url={source}"]


async def test_a_lock_file_that_does_not_fit_is_told_with_the_way_out(
    tmp_path: Path, repository: ChartRepository
) -> None:
    repository.add("base", "1.0.0")
    needs = f"dependencies:\n- name: base\n  version: 1.0.0\n  repository: {repository.url}\n"
    lock = LOCK.format(url=repository.url, version="0.9.0", digest="sha256:" + "0" * 64)
    files = chart_files(prefix="chart/", more=needs) | {"chart/Chart.lock": lock}

    _, outcome = await build_files(tmp_path, files)

    assert outcome.reason is Reason.SOURCE_INVALID
    assert "run `helm dependency update` and commit the lock file" in outcome.message


async def test_vendored_dependencies_stay_as_they_are(tmp_path: Path) -> None:
    needs = "dependencies:\n- name: base\n  version: 1.0.0\n  repository: https://gone.invalid\n"
    files = chart_files(prefix="chart/", more=needs) | chart_files(
        "base", "1.0.0", prefix="chart/charts/base/"
    )

    site, outcome = await build_files(tmp_path, files)

    assert outcome.state is OutcomeState.SUCCEEDED, outcome.message
    assert "web/charts/base/Chart.yaml" in list_files(site)


@pytest.fixture
async def pushed(live: Live, tmp_path: Path) -> tuple[str, str]:
    """A chart that helm itself pushed to a registry: its folder and a password."""
    helm, folder, password = need_helm(), tmp_path / "mine", await live.token()
    for version in ("1.2.3", "1.4.0+7"):
        for name, content in chart_files(version=version).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content)
        env = write_login(tmp_path / "login.json", live, password)
        await live.run(helm, "package", folder, "-d", tmp_path / "packed")
        package = tmp_path / f"packed/web-{version}.tgz"
        target = f"oci://{live.name('charts')}"
        await live.run(helm, "push", package, target, "--plain-http", env=env)
    return f"oci://{live.name('charts')}", password


@pytest.mark.parametrize(("version", "chosen"), [("1.2.3", "1.2.3"), ("", "1.4.0+7")])
async def test_a_chart_of_a_registry_is_resolved_to_a_digest(
    pushed: tuple[str, str], tmp_path: Path, version: str, chosen: str
) -> None:
    url, password = pushed
    site = open_site(tmp_path / "site")
    file = tmp_path / "site/source-credentials.json"
    file.touch(mode=0o600)
    entry = {"prefix": url, "username": "exclave", "password": password}
    file.write_text(json.dumps({"credentials": [entry]}))

    source = {"type": "chart", "url": url, "chart": "web", "version": version}
    outcome = await site.build(source, type="helm_chart")

    assert outcome.state is OutcomeState.SUCCEEDED, outcome.message
    assert f"version: {chosen}" in list_files(site)["web/Chart.yaml"]
    chart = next(item for item in read_materials(site) if item["name"] == f"chart {chosen}")
    assert "@sha256:" in chart["uri"]
