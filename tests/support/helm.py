"""Real Helm on a runner's executor, with a real cluster and a control plane in this process."""

import subprocess
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from exclave.base.json_values import JsonObject
from exclave.control.deps import Deps
from exclave.domain.identity import QueueId, User
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.executors.deploy_kit import ClusterKit
from exclave.runner.executors.helm import HelmExecutor
from exclave.runner.helm.packages import pack_chart
from exclave.runner.jobs.artifacts import Puller
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.identity import JobIdentity
from exclave.runner.kube.api.connection import Connection
from exclave.runner.tools.finder import ToolFinder, ToolSettings
from exclave.wire.kubernetes import ClusterRef, HelmSpec
from tests.support.kubernetes import Cluster
from tests.support.kubernetes_tools import need_helm
from tests.support.manifests import make_connection
from tests.support.terraform import (
    ARTIFACT,
    CLOCK,
    PATH,
    RANDOM,
    Ran,
    TerraformHarness,
)
from tests.support.world import FakeRunner

WORKSPACE = "component:web"
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.2.3\nappVersion: '7'\n",
    "values.yaml": "image: registry.example/app:1\nreplicas: 1\nextra: false\nannotations: {}\n",
    "templates/objects.yaml": """apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-settings"}
data: {greeting: "{{ .Values.greeting | default "hello" }}"}
---
apiVersion: v1
kind: Secret
metadata: {name: "{{ .Release.Name }}-generated"}
stringData: {password: "{{ randAlphaNum 20 }}", given: "{{ .Values.password | default "none" }}"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: "{{ .Release.Name }}"}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: "{{ .Release.Name }}"}}
  template:
    metadata:
      labels: {app: "{{ .Release.Name }}"}
      annotations: {{ .Values.annotations | toJson }}
    spec:
      containers:
      - name: app
        image: {{ .Values.image }}
---
apiVersion: v1
kind: Service
metadata: {name: "{{ .Release.Name }}"}
spec:
  selector: {app: "{{ .Release.Name }}"}
  ports: [{port: 80}]
{{- if .Values.extra }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: "{{ .Release.Name }}-extra"}
data: {a: b}
{{- end }}
""",
}
"""A chart with a random password, a workload, and an object that a value adds."""


class ChartRegistry:
    """Serves a chart's folder as the artifact that a build would make of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def pull_layer(self, repository: str, digest: str, target: Path) -> Path:
        """Pack the folder as it is now."""
        del repository, digest
        with target.open("wb") as out:
            pack_chart(self.folder, "demo", out)
        return target


class HelmHarness(TerraformHarness):
    """An install, its runner's helm executor, a chart written by the test, a namespace."""

    def __init__(
        self,
        deps: Deps,
        user: User,
        queue: QueueId,
        peer: FakeRunner,
        folder: Path,
        cluster: Cluster,
        namespace: str,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(deps, user, queue, peer, folder, secrets)
        self.cluster, self.namespace = cluster, namespace
        self.server = ""
        """The address of a proxy before the cluster, if there is one."""
        self.helm = ClusterKit(
            children=ChildSettings(path=PATH),
            secrets=self.kit.secrets,
            sealer=self.sealer,
            finder=ToolFinder(ToolSettings(need_helm().parent, PATH, download=False)),
            open_registry=self._open_charts,
            connect=self._connect,
            clock=CLOCK,
            randomness=RANDOM,
            timeout_grace_s=5.0,
            keep_free_bytes=0,
        )
        self.write_files(CHART)

    def write_files(self, files: Mapping[str, str]) -> None:
        """Write files of the chart."""
        for name, content in files.items():
            path = self.module / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)

    def make_spec(self, operation: str, **more: Any) -> HelmSpec:
        """Return a job of the release `web` in the namespace of the test."""
        return HelmSpec.model_validate(
            {
                "operation": operation,
                "workspace": WORKSPACE,
                "artifact": ARTIFACT,
                "cluster": {"type": "kubeconfig"},
                "namespace": self.namespace,
                "release": "web",
                "timeout_s": 60.0,
                **more,
            }
        )

    async def run_helm(self, spec: HelmSpec, **more: Any) -> Ran:
        """Run one helm job and report its outcome."""
        return await self.run_job(HelmExecutor(self.helm), spec, **more)

    async def plan_release(self, **more: Any) -> Ran:
        """Plan the chart as it is now."""
        return await self.run_helm(self.make_spec("plan", **more))

    async def apply_release(self, planned: Ran, **more: Any) -> Ran:
        """Apply a plan."""
        digest = planned.outputs["digest"]
        ref = {"execution_id": planned.offer.execution_id, "digest": digest}
        extra = {name: more.pop(name) for name in ("hand_in", "offer") if name in more}
        spec = self.make_spec("apply", plan=ref, **more)
        return await self.run_helm(spec, **extra, approved_digest=digest)

    async def deploy(self, **more: Any) -> Ran:
        """Plan and apply."""
        planned = await self.plan_release(**more)
        assert planned.outcome.state == "succeeded", planned.text
        kept = {
            name: more[name]
            for name in ("destroy", "timeout_s", "driver", "workspace")
            if name in more
        }
        return await self.apply_release(planned, **kept)

    async def read_actions(self, planned: Ran) -> dict[str, str]:
        """Return what a plan does, by address."""
        document = await self.read_plan(planned)
        return {entry["address"]: entry["action"] for entry in document["resources"]}

    def get(self, path: str) -> JsonObject:
        """Return an object of the namespace, such as `configmaps/web-settings`."""
        group = "/apis/apps/v1" if path.startswith("deployments") else "/api/v1"
        return self.cluster.request("GET", f"{group}/namespaces/{self.namespace}/{path}")

    def has(self, path: str) -> bool:
        """Return whether an object of the namespace exists."""
        group = "/apis/apps/v1" if path.startswith("deployments") else "/api/v1"
        return self.cluster.exists(f"{group}/namespaces/{self.namespace}/{path}")

    def call_helm(self, *words: str, helm: Path | None = None, check: bool = True) -> str:
        """Run helm as a person would."""
        done = subprocess.run(
            [str(helm or need_helm()), *words, "-n", self.namespace],
            env={**self.cluster.environment, "HOME": str(self.folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout if check else done.stderr

    async def _connect(
        self,
        cluster: ClusterRef,
        fill: Callable[[str], str],
        identity: JobIdentity | None = None,
    ) -> Connection:
        del cluster, fill, identity
        return make_connection(self.cluster, self.server)

    @asynccontextmanager
    async def _open_charts(self, uplink: Uplink) -> AsyncIterator[Puller]:
        del uplink
        yield ChartRegistry(self.module)
