"""Frozen charts render what was rendered once: objects, order, hooks and notes, whatever is in them."""

import json
import subprocess
from pathlib import Path

import pytest

from exclave.base.json_values import JsonObject
from exclave.runner.helm.freeze import drop_duplicate_env, freeze
from exclave.runner.helm.rendered import RenderedRelease, read_template
from tests.support.kubernetes_tools import need_helm

SUBCHART = {
    "Chart.yaml": """apiVersion: v2
name: parent
version: 1.0.0
dependencies:
- {name: child, version: 0.1.0, repository: "", alias: first}
- {name: child, version: 0.1.0, repository: "", alias: second}
""",
    "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: parent}\n",
    "charts/child/Chart.yaml": "apiVersion: v2\nname: child\nversion: 0.1.0\n",
    "charts/child/templates/b.yaml": (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: '{{ .Chart.Name }}'}\n"
        "stringData: {password: '{{ randAlphaNum 12 }}'}\n"
    ),
}
HOOKS = {
    "Chart.yaml": "apiVersion: v2\nname: hooks\nversion: 1.0.0\n",
    "templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
    "templates/hooks.yaml": "---\n".join(
        f"""apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  annotations: {{helm.sh/hook: "{events}", helm.sh/hook-weight: "{weight}"}}
spec: {{template: {{spec: {{restartPolicy: Never, containers: [{{name: c, image: x}}]}}}}}}
"""
        for name, events, weight in [
            ("late", "pre-install,pre-upgrade", 5),
            ("early", "pre-install", -5),
            ("check", "test", 0),
            ("bye", "pre-delete", 1),
        ]
    ),
    "templates/NOTES.txt": "{{ .Release.Name }} is {{ randAlpha 5 }}\n",
}
TEXTS = {
    "Chart.yaml": "apiVersion: v2\nname: texts\nversion: 1.0.0\n",
    "values.yaml": 'odd: "{{ .Values.not | a.template }} %s"\n',
    "templates/a.yaml": """apiVersion: v1
kind: ConfigMap
metadata: {name: texts}
data:
  template: {{ .Values.odd | quote }}
  block: |
    one
    ---
    two: {{ "{{ three }}" }}
      four
  trailing: "a \\n b\\t"
  number: "012"
  yes: "yes"
  date: "2026-01-01"
  unicode: "ü ☃"
  empty: ""
  long: {{ repeat 300 "word " | quote }}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: listed}}
---
# a document that is only a comment
""",
}


@pytest.mark.parametrize("files", [SUBCHART, HOOKS, TEXTS], ids=["subcharts", "hooks", "texts"])
def test_a_frozen_chart_renders_the_same_release(tmp_path: Path, files: dict[str, str]) -> None:
    chart = tmp_path / "chart"
    for name, content in files.items():
        (chart / name).parent.mkdir(parents=True, exist_ok=True)
        (chart / name).write_text(content)
    rendered = render(chart)
    frozen = tmp_path / "frozen.tgz"
    frozen.write_bytes(freeze(rendered).chart)

    again = render(frozen)

    assert describe(again) == describe(rendered)
    assert rendered.objects
    refrozen = freeze(RenderedRelease(rendered.metadata, again.objects, again.hooks))
    assert refrozen.chart == freeze(rendered).chart


def render(chart: Path) -> RenderedRelease:
    done = subprocess.run(
        [str(need_helm()), "template", "web", str(chart)],
        capture_output=True,
        text=True,
        check=True,
        env={"HOME": str(chart.parent)},
    )
    metadata = {"apiVersion": "v2", "name": "frozen", "version": "1.0.0", "dependencies": []}
    return read_template(done.stdout, metadata)


def describe(release: RenderedRelease) -> str:
    """Return objects and hooks in their order, as text."""
    objects = [source.value for source in release.objects]
    hooks = [(hook.source.value, list(hook.events)) for hook in release.hooks]
    return json.dumps([objects, hooks], indent=1)


def test_the_last_of_equal_variables_is_kept_with_a_warning() -> None:
    container: JsonObject = {
        "name": "app",
        "env": [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "A", "value": "2"}],
    }
    value: JsonObject = {
        "kind": "Deployment",
        "spec": {"template": {"spec": {"containers": [container]}}},
    }

    cleaned, names = drop_duplicate_env(value)

    assert names == ["A"]
    kept = [{"name": "B"}, {"name": "A", "value": "2"}]
    assert cleaned["spec"] == {"template": {"spec": {"containers": [{"name": "app", "env": kept}]}}}
