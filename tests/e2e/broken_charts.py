"""A chart that can be broken in many ways, each by a value, and what a user is told about it."""

from dataclasses import dataclass

CHART = {
    "chart/Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
    "chart/values.yaml": "way: ''\n",
    "chart/templates/web.yaml": """{{- $way := .Values.way }}
apiVersion: v1
kind: Service
metadata:
  name: {{ eq $way "name" | ternary (repeat 64 "x") (printf "web-%s" $way) }}
spec:
  selector: {app: web}
  ports: [{port: 80}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: "web-{{ $way }}"}
spec:
  {{- if eq $way "field" }}
  replicaz: 2
  {{- end }}
  selector: {matchLabels: {app: "{{ $way }}"}}
  template:
    metadata:
      labels: {app: "{{ $way }}"}
      {{- if has $way (list "image" "crash" "oom" "config" "volume" "unready" "hang") }}
      annotations: {bed/fail: {{ $way }}}
      {{- end }}
    spec:
      {{- if eq $way "scheduler" }}
      nodeSelector: {disk: golden}
      {{- end }}
      containers:
      - name: app
        image: {{ if eq $way "template" }}{{ .Values.image.name }}{{ else }}shop/app:9{{ end }}
""",
    "chart/templates/others.yaml": """{{- $way := .Values.way }}
{{- if eq $way "kind" }}
apiVersion: example.com/v1
kind: Wheel
metadata: {name: wheel}
{{- else if eq $way "claim" }}
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: slow
  resources: {requests: {storage: 2Gi}}
{{- else if eq $way "policy" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: forbidden}
{{- else if eq $way "yaml" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: text}
data: {text: "no end}
{{- else if eq $way "owner" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: somebodys}
{{- else if eq $way "hook" }}
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations: {helm.sh/hook: "pre-install,pre-upgrade"}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {bed/fail: crash}}
    spec:
      restartPolicy: Never
      containers: [{name: app, image: "shop/app:9"}]
{{- end }}
""",
}


@dataclass(frozen=True)
class Breakage:
    """A way to break the chart, and what the user has to read."""

    way: str
    step: str
    """The step that fails: `plan` or `apply`."""
    reason: str
    cause: str
    hint: str = ""


BREAKAGES = (
    Breakage("template", "plan", "syntax", "web.yaml:30:52", "<.Values.image.name>: nil pointer"),
    Breakage("yaml", "plan", "syntax", "YAML parse error on shop/templates/others.yaml"),
    Breakage("field", "plan", "object_refused", ".spec.replicaz: field not declared in schema"),
    Breakage("name", "plan", "object_refused", "must be no more than 63 characters"),
    Breakage("kind", "plan", "object_refused", 'no matches for kind "Wheel"', "`crds/`"),
    Breakage("claim", "plan", "object_refused", "spec is immutable", "create a claim with another"),
    Breakage("policy", "plan", "object_refused", "denied request: ConfigMaps are named by"),
    Breakage("owner", "plan", "object_refused", "the release `billing`", "`take_ownership`"),
    Breakage("hook", "apply", "hook_failed", "/migrate: container app exits with 1", "panic: can"),
    Breakage("image", "apply", "rollout_failed", "shop/app:9: not found", "check that the image"),
    Breakage("crash", "apply", "rollout_failed", "exits with 1 (3 restarts); last line: panic: c"),
    Breakage("oom", "apply", "rollout_failed", "killed for its memory limit", "limits.memory"),
    Breakage("config", "apply", "rollout_failed", 'secret "db-password" not found', "create what"),
    Breakage("volume", "apply", "rollout_failed", 'configmap "app" not found', "look at the claim"),
    Breakage("scheduler", "apply", "rollout_failed", "0/1 nodes are available", "give the cluster"),
    Breakage("quota", "apply", "rollout_failed", "exceeded quota: few, requested: pods=1", "quota"),
    Breakage("security", "apply", "rollout_failed", 'violates PodSecurity "restricted', "security"),
    Breakage(
        "unready", "apply", "rollout_failed", "Readiness probe failed: HTTP", "look at the re"
    ),
    Breakage("hang", "apply", "timeout", "/web-hang: 0 of 1 ready"),
)
COMPONENT = """name = "{way}"
type = "helm_chart"
chart_name = "shop-{way}"
namespace = "{namespace}"
deploy_timeout = "20s"
take_ownership = {takes}

[public_repo]
repo = "."
directory = "chart"

[values]
way = "{way}"
"""


def write_component(way: str, namespace: str) -> str:
    """Return the component that deploys the chart broken in one way."""
    takes = "true" if way == "claim" else "false"
    return COMPONENT.format(way=way, namespace=namespace, takes=takes)
