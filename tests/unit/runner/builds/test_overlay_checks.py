"""Overlays that lead out of their source are refused before kustomize is started."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from exclave.runner.builds.overlay_checks import check_overlay
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

INSIDE = {
    "base/kustomization.yaml": "resources: [web.yaml]\n",
    "base/web.yaml": "",
    "base/values.yaml": "",
    "app/settings.env": "",
    "app/charts/cache/Chart.yaml": "",
}


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def make_source(folder: Path, kustomization: str) -> Path:
    """Write a source whose overlay is `app`, beside a file that is not part of it."""
    write(folder, {"secret": "canary", "outer/kustomization.yaml": "resources: []"})
    return write(folder / "source", {**INSIDE, "app/kustomization.yaml": kustomization})


@pytest.mark.parametrize(
    "kustomization",
    [
        "resources: [../base]\nnamePrefix: a-\nimages: [{name: a, newTag: '1'}]",
        "components: [../base]",
        "configMapGenerator: [{name: c, files: [web=../base/web.yaml], envs: [settings.env]}]",
        "secretGenerator: [{name: c, env: settings.env, literals: [a=b]}]",
        "patches: [{path: ../base/web.yaml}, {patch: 'a: b', target: {kind: A}}]",
        "patches: [../base/web.yaml]",
        'patchesStrategicMerge: ["kind: A\\nmetadata: {name: a}\\n", ../base/web.yaml]',
        "openapi: {path: ../base/web.yaml}\ncrds: [../base/web.yaml]",
        (
            "transformers:\n- |-\n  apiVersion: builtin\n  kind: LabelTransformer\n"
            "  metadata: {name: l}\n  fieldSpecs: [{path: metadata/labels}]\n"
        ),
        "helmCharts: [{name: cache, releaseName: c, valuesFile: ../base/values.yaml}]",
        "helmGlobals: {chartHome: charts}\nhelmCharts: [{name: cache, valuesInline: {a: -1}}]",
    ],
)
def test_what_stays_in_the_source_is_allowed(tmp_path: Path, kustomization: str) -> None:
    source = make_source(tmp_path, kustomization)

    check_overlay(source, source / "app")


@pytest.mark.parametrize(
    ("kustomization", "flaw"),
    [
        ("configMapGenerator: [{name: c, files: [../../secret]}]", "`../../secret` leads out"),
        ("configMapGenerator: [{name: c, files: [k=/etc/passwd]}]", "`/etc/passwd` leads out"),
        ("configMapGenerator: [{name: c, Files: [../../secret]}]", "`../../secret` leads out"),
        ("secretGenerator: [{name: c, envs: [../../secret]}]", "`../../secret` leads out"),
        ("resources: [../../outer]", "`../../outer` leads out"),
        ("resources: [link/web.yaml]", "`link/web.yaml` leads out"),
        ("resources: [link/../app/settings.env]", "leads out"),
        ("components: [../../outer]", "`../../outer` leads out"),
        ("patches: [{path: ../../secret}]", "`../../secret` leads out"),
        ("patches: [../../secret]", "`../../secret` leads out"),
        ("patchesStrategicMerge: [../../secret]", "`../../secret` leads out"),
        ('patchesStrategicMerge: ["kind: A\\n/../../../secret"]', "fetched"),
        ("patchesJson6902: [{target: {kind: A}, path: ../../secret}]", "leads out"),
        ("replacements: [{path: ../../secret}]", "leads out"),
        ("openapi: {Path: ../../secret}", "leads out"),
        ("crds: [../../secret]\nconfigurations: [../../secret]", "leads out"),
        ("transformers: [../../secret]", "leads out"),
        (
            "generators:\n- |-\n  kind: ConfigMapGenerator\n  files: [../../secret]\n",
            "`../../secret` leads out",
        ),
        ("generators:\n- |-\n  kind: Exec\n  path: ./run.sh\n", "the plugin `Exec`"),
        ("transformers: [../base]", "one by one"),
        ("resources: [https://example.com/web.yaml]", "is fetched from elsewhere"),
        ("resources: ['http://169.254.169.254/latest']", "is fetched from elsewhere"),
        ("resources: [github.com/example/app//k8s?ref=v1]", "is fetched from elsewhere"),
        ("resources: [GitHub.com/example/app]", "is fetched from elsewhere"),
        ("resources: ['git@example.com:app/k8s']", "is fetched from elsewhere"),
        ("resources: ['gh:example/app']", "is fetched from elsewhere"),
        ("resources: ['git::file:///srv/app']", "is fetched from elsewhere"),
        ("resources: ['file:///srv/app']", "is fetched from elsewhere"),
        ("components: ['ssh://git@example.com/app']", "is fetched from elsewhere"),
        ("patchesStrategicMerge: ['http://example.com/a?kind: b']", "is fetched from elsewhere"),
        ("Resources: [../../secret]", "do not support the field `Resources`"),
        ("helmChartInflationGenerator: [{chartName: a}]", "do not support the field"),
        ("helmCharts: [{name: cache, repo: 'https://example.com'}]", "support `repo` of a chart"),
        ("helmCharts: [{name: cache, nameTemplate: '{{env `HOME`}}'}]", "`nametemplate`"),
        ("helmCharts: [{name: cache, valuesFile: ../../secret}]", "leads out"),
        ("helmCharts: [{name: cache, additionalValuesFiles: ['https://a/b']}]", "fetched"),
        ("helmCharts: [{name: cache, releaseName: --values=/etc/passwd}]", "option of helm"),
        ("helmCharts: [{name: ../../../outer}]", "leads out"),
        ("helmGlobals: {chartHome: /srv}\nhelmCharts: [{name: cache}]", "leads out"),
        ("helmGlobals: {configHome: /srv}\nhelmCharts: [{name: cache}]", "only `chartHome`"),
        ("helmCharts: [{name: linked}]", "charts/linked/values.yaml: the link leads out"),
        (
            (
                "generators:\n- |-\n  kind: HelmChartInflationGenerator\n  metadata: {name: a}\n"
                "  name: cache\n  repo: oci://example.com/a\n"
            ),
            "support `repo` of a chart",
        ),
        ("resources: [nowhere.yaml]", "there is no `nowhere.yaml`"),
        ("resources: [..", "line 2: did not find expected"),
    ],
)
def test_what_leads_out_of_the_source_is_refused_by_name(
    tmp_path: Path, kustomization: str, flaw: str
) -> None:
    source = make_source(tmp_path, kustomization)
    (source / "app" / "link").symlink_to(tmp_path)
    linked = source / "app" / "charts" / "linked"
    linked.mkdir()
    (linked / "values.yaml").symlink_to(tmp_path / "secret")

    with pytest.raises(WorkFailed) as refused:
        check_overlay(source, source / "app")

    assert refused.value.reason is Reason.SOURCE_INVALID
    assert flaw in refused.value.message
    assert "app/" in refused.value.message
    assert "canary" not in refused.value.message


def test_a_base_of_a_base_is_checked_and_a_circle_ends(tmp_path: Path) -> None:
    source = make_source(tmp_path, "resources: [../base]")
    write(source, {"base/kustomization.yaml": "resources: [../app, ../deep]"})
    write(source, {"deep/kustomization.yml": "resources: [../../secret]"})

    with pytest.raises(WorkFailed, match=r"deep/kustomization.yml: `../../secret` leads out"):
        check_overlay(source, source / "app")


def test_a_kustomization_that_is_a_link_out_of_the_source_is_not_read(tmp_path: Path) -> None:
    source = make_source(tmp_path, "resources: [../base]")
    (source / "base" / "kustomization.yaml").unlink()
    (source / "base" / "kustomization.yaml").symlink_to(tmp_path / "secret")

    with pytest.raises(WorkFailed, match="yaml: it is a link") as refused:
        check_overlay(source, source / "app")

    assert "canary" not in refused.value.message
