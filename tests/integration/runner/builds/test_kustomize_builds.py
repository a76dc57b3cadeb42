"""Overlays become one file of plain objects, the same bytes whenever they are built."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from exclave.runner.kube.api.objects import read_objects
from exclave.wire.jobs import OutcomeState, Reason
from exclave.wire.runner import Outcome
from tests.integration.runner.executors.build_kit import Site, upload, uploaded
from tests.support.git import make_repo
from tests.support.kubernetes_tools import need_helm, need_kubectl

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: shop/web}]}
"""
FILES = {
    "k8s/base/kustomization.yaml": "resources: [web.yaml]\n",
    "k8s/base/web.yaml": DEPLOYMENT,
    "k8s/overlays/prod/kustomization.yaml": (
        "namePrefix: prod-\nresources: [../../base]\n"
        "configMapGenerator: [{name: settings, literals: [size=2]}]\n"
        "images: [{name: shop/web, newTag: '7'}]\n"
    ),
    "k8s/patches/replicas.yaml": (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: prod-web}\nspec: {replicas: 3}\n"
    ),
}
OVERLAY = {"path": "overlays/prod"}


async def build(
    folder: Path, files: Mapping[str, str], options: Mapping[str, Any]
) -> tuple[Site, Outcome]:
    archive = upload(folder / "app", files)
    site = Site(folder / "site", archive, tools=need_kubectl().parent)
    source = uploaded(archive, "k8s")
    return site, await site.build(source, type="kustomize", kustomize=options)


def list_objects(site: Site) -> list[tuple[str, Any]]:
    text = site.fake.pushed[0]["data"].decode()
    return [(source.id.kind, source.value) for source in read_objects(text)]


async def test_an_overlay_becomes_sorted_objects_with_all_names_written_out(
    tmp_path: Path,
) -> None:
    site, outcome = await build(tmp_path, FILES, OVERLAY)

    assert outcome.state is OutcomeState.SUCCEEDED, outcome.message
    (kind, settings), (_, web) = list_objects(site)
    assert (kind, settings["data"]) == ("ConfigMap", {"size": "2"})
    assert settings["metadata"]["name"].startswith("prod-settings-")
    assert web["spec"]["template"]["spec"]["containers"][0]["image"] == "shop/web:7"
    assert site.fake.pushed[0]["layer_type"].endswith("kubernetes_manifest.v1+yaml")


async def test_the_same_overlay_gives_the_same_bytes(tmp_path: Path) -> None:
    first, _ = await build(tmp_path / "a", FILES, OVERLAY)
    second, _ = await build(tmp_path / "b", FILES, OVERLAY)

    assert first.fake.pushed[0]["data"] == second.fake.pushed[0]["data"]


async def test_patches_of_the_component_are_added_on_top(tmp_path: Path) -> None:
    site, outcome = await build(tmp_path, FILES, {**OVERLAY, "patches": ["patches/replicas.yaml"]})

    assert outcome.state is OutcomeState.SUCCEEDED, outcome.message
    assert list_objects(site)[1][1]["spec"]["replicas"] == 3


async def test_an_overlay_in_git_reaches_its_base(tmp_path: Path) -> None:
    repo = make_repo(tmp_path / "repo", FILES)
    site = Site(tmp_path / "site", tools=need_kubectl().parent)
    source = {"type": "git", "url": repo.url, "ref": "main", "directory": "k8s"}

    outcome = await site.build(source, type="kustomize", kustomize=OVERLAY)

    assert outcome.state is OutcomeState.SUCCEEDED, outcome.message
    assert len(list_objects(site)) == 2


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"path": "nowhere"}, "nowhere"),
        ({}, {"path": "patches"}, "`patches` has no kustomization.yaml"),
        ({}, {**OVERLAY, "patches": ["../../secret"]}, "there is no patch `../../secret`"),
        (
            {"k8s/overlays/prod/kustomization.yaml": "resources: [missing.yaml]"},
            OVERLAY,
            "kustomization.yaml: there is no `missing.yaml` in the source",
        ),
        (
            {
                "k8s/overlays/prod/kustomization.yaml": (
                    "configMapGenerator: [{name: c, files: [../../base/web.yaml]}]"
                )
            },
            OVERLAY,
            "is not in or below",
        ),
        ({"k8s/base/web.yaml": "{"}, OVERLAY, "kustomize cannot build the overlay"),
    ],
)
async def test_a_broken_overlay_says_what_is_wrong(
    tmp_path: Path, change: Mapping[str, str], options: Mapping[str, Any], message: str
) -> None:
    site, outcome = await build(tmp_path, {**FILES, **change}, options)

    assert outcome.reason is Reason.SOURCE_INVALID
    assert message in outcome.message
    assert site.fake.pushed == []


async def test_files_outside_of_an_overlay_are_read_where_the_app_allows_it(
    tmp_path: Path,
) -> None:
    files = {
        **FILES,
        "k8s/overlays/prod/kustomization.yaml": (
            "configMapGenerator: [{name: c, files: [../../base/web.yaml]}]"
        ),
    }

    site, outcome = await build(tmp_path, files, {**OVERLAY, "restrict": False})

    assert outcome.state is OutcomeState.SUCCEEDED, outcome.message
    assert list_objects(site)[0][1]["data"]["web.yaml"] == DEPLOYMENT


@pytest.mark.parametrize(
    ("kustomization", "flaw"),
    [
        ("configMapGenerator: [{name: c, files: [../../../../../secret]}]", "leads out"),
        ("configMapGenerator: [{name: c, files: [/etc/passwd]}]", "leads out"),
        ("configMapGenerator: [{name: c, files: [link]}]", "leads out"),
        ("resources: ['file://SOURCE']", "is fetched from elsewhere"),
        ("resources: ['http://127.0.0.1:1/a.yaml']", "is fetched from elsewhere"),
    ],
)
async def test_an_overlay_that_leads_out_of_the_source_is_refused_even_without_a_restrictor(
    tmp_path: Path, kustomization: str, flaw: str
) -> None:
    (tmp_path / "secret").write_text("canary")
    text = kustomization.replace("SOURCE", str(tmp_path / "repo"))
    files = {**FILES, "k8s/overlays/prod/kustomization.yaml": text}
    repo = make_repo(tmp_path / "repo", files)
    (repo.path / "k8s" / "overlays" / "prod" / "link").symlink_to("/etc/passwd")
    repo.commit({})
    site = Site(tmp_path / "site", tools=need_kubectl().parent)
    source = {"type": "git", "url": repo.url, "ref": "main", "directory": "k8s"}

    outcome = await site.build(source, type="kustomize", kustomize={**OVERLAY, "restrict": False})

    assert outcome.reason is Reason.SOURCE_INVALID, outcome.message
    assert flaw in outcome.message
    assert site.fake.pushed == []


async def test_a_base_that_the_check_overlooks_is_not_fetched_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exclave.runner.builds.kustomize.check_overlay", lambda *_: None)
    base = make_repo(tmp_path / "base", {"kustomization.yaml": "resources: []\n"})
    text = f"resources: ['file://{base.path}?ref=main']"
    files = {**FILES, "k8s/overlays/prod/kustomization.yaml": text}

    _, outcome = await build(tmp_path, files, OVERLAY)

    assert outcome.reason is Reason.SOURCE_INVALID
    assert "no 'git' program on path" in outcome.message


async def test_a_chart_in_an_overlay_is_rendered_where_the_app_allows_it(tmp_path: Path) -> None:
    chart = "k8s/overlays/prod/charts/cache"
    files = {
        "k8s/overlays/prod/kustomization.yaml": "helmCharts: [{name: cache, releaseName: c}]\n",
        f"{chart}/Chart.yaml": "apiVersion: v2\nname: cache\nversion: 1.0.0\n",
        f"{chart}/values.yaml": "",
        f"{chart}/templates/c.yaml": (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-cache}\n"
        ),
    }
    assert need_helm().exists()

    refused = (await build(tmp_path / "a", files, OVERLAY))[1]
    site, outcome = await build(tmp_path / "b", files, {**OVERLAY, "enable_helm": True})

    assert refused.reason is Reason.SOURCE_INVALID
    assert outcome.state is OutcomeState.SUCCEEDED, outcome.message
    assert list_objects(site)[0][1]["metadata"]["name"] == "c-cache"
