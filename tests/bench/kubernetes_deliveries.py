"""What the platform adds to helm and kubectl: the time around one change of one component."""

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from tests.bench.report import Measure, say
from tests.support.dev_server import DevServer, open_dev
from tests.support.kubernetes import Cluster, find_folder, open_namespace, share_cluster
from tests.support.kubernetes_tools import need_helm, need_kubectl

REPEATS = 5
GOAL = "<= 1 s"
GOAL_S = 1.0

_METADATA = 'version = "v2"\ndisplay_name = "Bench"\ndescription = "."\n'
_SANDBOX = 'terraform_version = "1.11.0"\n[public_repo]\nrepo = "."\ndirectory = "base"\n'
_INPUTS = """
[[group]]
name = "all"
display_name = "All"
description = "."

[[input]]
name = "version"
display_name = "Version"
description = "."
group = "all"
default = "0"
"""
_CHART = """
name = "app"
type = "helm_chart"
chart_name = "bench"
namespace = "{}"
storage_driver = "secret"

[public_repo]
repo = "."
directory = "chart"

[values]
version = "v{{{{ .nuon.inputs.inputs.version }}}}"
"""
_MANIFEST = """
name = "app"
type = "kubernetes_manifest"
namespace = "{}"
manifest = "../app.yaml"
"""
_OBJECTS = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: bench}
spec:
  replicas: 2
  selector: {matchLabels: {app: bench}}
  template:
    metadata:
      labels: {app: bench}
      annotations: {version: "VERSION"}
    spec:
      containers: [{name: app, image: "registry.example/app:1"}]
---
apiVersion: v1
kind: Service
metadata: {name: bench}
spec:
  selector: {app: bench}
  ports: [{port: 80}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: bench}
data: {version: "VERSION"}
"""


def measure_helm() -> Iterator[Measure]:
    """Upgrade a small chart again and again; compare with bare `helm upgrade --install --wait`."""
    helm = str(need_helm())
    with _open_cluster() as (cluster, folder), open_namespace(cluster) as namespace:
        chart = folder / "app" / "chart"
        argv = [helm, "upgrade", "--install", "bench", str(chart), "-n", namespace, "--wait"]

        def run_bare(number: int) -> None:
            _run(cluster, [*argv, "--set", f"version=v{number}"])

        _write_app(folder / "app", _CHART)
        _write_chart(chart)
        yield _compare("helm_overhead", cluster, folder, run_bare, "helm upgrade --install --wait")


def measure_manifest() -> Iterator[Measure]:
    """Change a manifest again and again; compare with kubectl apply and rollout status."""
    kubectl = str(need_kubectl())
    with _open_cluster() as (cluster, folder), open_namespace(cluster) as namespace:

        def run_bare(number: int) -> None:
            file = folder / "bare.yaml"
            file.write_text(_OBJECTS.replace("VERSION", f"v{number}"))
            here = [kubectl, "-n", namespace]
            _run(cluster, [*here, "apply", "--server-side", "-f", str(file)])
            _run(cluster, [*here, "rollout", "status", "deployment/bench"])

        _write_app(folder / "app", _MANIFEST)
        text = _OBJECTS.replace("VERSION", "v{{ .nuon.inputs.inputs.version }}")
        (folder / "app" / "app.yaml").write_text(text)
        what = "kubectl apply --server-side, rollout status"
        yield _compare("manifest_overhead", cluster, folder, run_bare, what)


def _compare(
    name: str, cluster: Cluster, folder: Path, run_bare: Callable[[int], None], what: str
) -> Measure:
    run_bare(0)
    bare = _take_median(lambda number: _take_time(run_bare, number))
    tools = str(need_helm().parent)
    with open_dev(folder, "--kubeconfig", str(cluster.kubeconfig), TOOLS=tools) as site:
        _install(site)
        wall = _take_median(lambda number: _deploy(site, number))
    return Measure(
        name,
        wall - bare,
        "s",
        GOAL,
        met=wall - bare <= GOAL_S,
        baseline=bare,
        ratio=wall / bare,
        detail={"wall_s": round(wall, 2), "baseline_is": what},
    )


def _install(site: DevServer) -> None:
    say("  installing …")
    site.ask("apps", "create", "app")
    site.run("apps", "sync", "app", "--wait")
    site.run("installs", "create", "app", "--name", "acme", "--here", "--approve-all", "--wait")
    site.run("installs", "approve-all", "acme", "on", "--yes")


def _deploy(site: DevServer, number: int) -> float:
    """Change the input that the component reads; return how long the workflow took."""
    site.run("installs", "inputs", "set", "acme", f"version={number}", "--wait")
    workflow = site.ask("workflows", "get", "acme")
    begin, end = (datetime.fromisoformat(workflow[key]) for key in ("created_at", "finished_at"))
    return (end - begin).total_seconds()


def _take_median(measure: Callable[[int], float]) -> float:
    return sorted(measure(number) for number in range(1, REPEATS + 1))[REPEATS // 2]


def _take_time(work: Callable[[int], None], number: int) -> float:
    began = time.perf_counter()
    work(number)
    return time.perf_counter() - began


def _run(cluster: Cluster, argv: list[str]) -> None:
    subprocess.run(argv, env=cluster.environment, check=True, capture_output=True)


def _write_app(app: Path, component: str) -> None:
    (app / "components").mkdir(parents=True)
    (app / "base").mkdir()
    (app / "base" / "main.tf").write_text('output "name" { value = "bench" }\n')
    (app / "metadata.toml").write_text(_METADATA)
    (app / "runner.toml").write_text('runner_type = "local"\n')
    (app / "sandbox.toml").write_text(_SANDBOX)
    (app / "inputs.toml").write_text(_INPUTS)
    (app / "components" / "app.toml").write_text(component.format("bench"))


def _write_chart(chart: Path) -> None:
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: bench\nversion: 0.1.0\n")
    (chart / "values.yaml").write_text('version: "v0"\n')
    text = _OBJECTS.replace("VERSION", "{{ .Values.version }}")
    (chart / "templates" / "app.yaml").write_text(text)


@contextmanager
def _open_cluster() -> Iterator[tuple[Cluster, Path]]:
    temporary = tempfile.TemporaryDirectory(prefix="exclave-bench-")
    with temporary as folder, share_cluster(find_folder()) as cluster:
        yield cluster, Path(folder)
