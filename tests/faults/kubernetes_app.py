"""A chart and a manifest whose objects are named after a round, and a site with an install."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from exclave.base.json_values import JsonObject, list_or_empty, object_or_empty, text_or_empty
from exclave.runner.kube.access.named_kubeconfigs import keep_kubeconfigs
from tests.faults.app_site import AppSite
from tests.faults.site import wait_until
from tests.faults.terraform_app import FILES
from tests.support.kubernetes import Cluster
from tests.support.kubernetes_tools import need_helm

OBJECTS = """apiVersion: v1
kind: ConfigMap
metadata: {name: NAME-ROUND}
data: {round: "ROUND"}
---
apiVersion: v1
kind: Service
metadata: {name: NAME}
spec:
  selector: {app: NAME}
  ports: [{port: 80}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  replicas: 2
  selector: {matchLabels: {app: NAME}}
  template:
    metadata:
      labels: {app: NAME}
      annotations: {round: "ROUND", bed/delay: "0.4"}
    spec: {containers: [{name: app, image: "shop/app:1"}]}
"""
HOOK = """apiVersion: batch/v1
kind: Job
metadata:
  name: web-before
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
spec:
  template:
    metadata: {annotations: {bed/delay: "0.3"}}
    spec:
      restartPolicy: Never
      containers: [{name: app, image: "shop/app:1"}]
"""
INPUT = "{{ .nuon.inputs.inputs.round }}"
CHART = """name = "web"
type = "helm_chart"
chart_name = "shopweb"
namespace = "NAMESPACE"

[public_repo]
repo = "."
directory = "web"

[values]
round = "ROUND"
"""
MANIFEST = """name = "site"
type = "kubernetes_manifest"
namespace = "NAMESPACE"
manifest = "../manifests/site.yaml"
"""
KINDS = {
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "Service": "/api/v1/namespaces/{}/services",
    "Pod": "/api/v1/namespaces/{}/pods",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
}
OF_KUBERNETES = "ConfigMap/kube-root-ca.crt"


def list_files(namespace: str) -> dict[str, str]:
    """Return the files of an app with a chart and a manifest, which do not need each other."""
    chart = OBJECTS.replace("NAME", "web").replace("ROUND", "{{ .Values.round }}")
    return {
        **FILES,
        "components/web.toml": CHART.replace("NAMESPACE", namespace).replace("ROUND", INPUT),
        "components/site.toml": MANIFEST.replace("NAMESPACE", namespace),
        "manifests/site.yaml": OBJECTS.replace("NAME", "site").replace("ROUND", INPUT),
        "web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        "web/templates/objects.yaml": chart,
        "web/templates/hook.yaml": HOOK,
    }


@dataclass
class KubernetesSite(AppSite):
    """A site whose install runner deploys to a real cluster."""

    cluster: Cluster | None = None
    namespace: str = ""

    def begin(
        self,
        files: Mapping[str, str] = {},
        kubeconfig: Path | None = None,
        *,
        approve_all: bool = True,
    ) -> None:
        """Sync and build the app with some files changed, and make an install of it."""
        assert self.cluster is not None
        folder = self.site.folder
        for name, text in {**list_files(self.namespace), **files}.items():
            file = folder / "shop" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        tools = {"TOOLS": str(need_helm().parent), "TOOLS_DOWNLOAD": "false"}
        self.begin_app("shop", folder / "shop", **tools)
        (folder / "runner").mkdir(mode=0o700)
        keep_kubeconfigs(folder / "runner", [str(kubeconfig or self.cluster.kubeconfig)])
        self.begin_install("shop", approve_all=approve_all, **tools)

    def list_objects(self) -> set[str]:
        """Return kind and name of what is in the namespace, but for pods and release records."""
        return {
            name
            for name, value in self._list_all()
            if not name.startswith("Pod/") and not _is_record(value)
        } - {OF_KUBERNETES}

    def list_statuses(self) -> list[str]:
        """Return the statuses of the revisions of the release, the oldest first."""
        records = [object_or_empty(v["metadata"]) for _, v in self._list_all() if _is_record(v)]
        labels = [object_or_empty(record.get("labels")) for record in records]
        ordered = sorted(labels, key=lambda entry: int(text_or_empty(entry.get("version"))))
        return [text_or_empty(entry.get("status")) for entry in ordered]

    def await_nothing(self) -> None:
        """Wait until nothing is in the namespace; pods end after their workloads."""
        wait_until(lambda: not self._list_names(), f"nothing is left of {self._list_names()}")

    def _list_names(self) -> set[str]:
        return {name for name, _ in self._list_all()} - {OF_KUBERNETES}

    def _list_all(self) -> Iterator[tuple[str, JsonObject]]:
        assert self.cluster is not None
        for kind, path in KINDS.items():
            listed = self.cluster.request("GET", path.format(self.namespace))
            for item in map(object_or_empty, list_or_empty(listed["items"])):
                name = text_or_empty(object_or_empty(item["metadata"])["name"])
                yield f"{kind}/{name}", item


def _is_record(value: JsonObject) -> bool:
    return text_or_empty(value.get("type")) == "helm.sh/release.v1"


def list_wanted(round_: str) -> set[str]:
    """Return kind and name of what an app of this round consists of."""
    return {
        f"{kind}/{name}"
        for part in ("web", "site")
        for kind, name in (
            ("ConfigMap", f"{part}-{round_}"),
            ("Service", part),
            ("Deployment", part),
        )
    }
