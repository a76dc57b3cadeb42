"""An app with a component of every type, each of which gets the customer's secret."""

from collections.abc import Mapping
from pathlib import Path

_REPO = '[public_repo]\nrepo = "."\ndirectory = "{folder}"\n'
_SECRET = "{{ .nuon.secrets.admin_password.arn }}"
_IMAGE = "{{ .nuon.components.%s.outputs.image.%s }}"
_TEARDOWN = "[teardown]\nvolumes = true\nnamespace = true\n"


def write_every_type(app: Path, namespace: str, image: str, tag: str) -> None:
    """Write the app; `image` is what its `container_image` is copied from."""
    for name, text in {
        **_write_components(namespace, image, tag),
        **_write_rest(namespace),
    }.items():
        file = app / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def _write_components(namespace: str, image: str, tag: str) -> Mapping[str, str]:
    return {
        "components/sizing.toml": f"""name = "sizing"
type = "terraform_module"
terraform_version = "1.11.0"
{_REPO.format(folder="modules/sizing")}[vars]
password = "{_SECRET}"
""",
        "components/image.toml": f"""name = "image"
type = "container_image"
[public]
image_url = "{image}"
tag = "{tag}"
""",
        "components/built.toml": f"""name = "built"
type = "docker_build"
dockerfile = "Dockerfile"
{_REPO.format(folder="built")}""",
        "components/web.toml": f"""name = "web"
type = "helm_chart"
chart_name = "web"
namespace = "{namespace}"
{_REPO.format(folder="charts/web")}[values]
password = "{_SECRET}"
image = "{_IMAGE % ("image", "repository")}:{_IMAGE % ("image", "tag")}"
replicas = "{{{{ .nuon.components.sizing.outputs.replicas }}}}"
{_TEARDOWN}""",
        "components/store.toml": f"""name = "store"
type = "kubernetes_manifest"
namespace = "{namespace}"
manifest = "../manifests/store.yaml"
{_TEARDOWN}""",
        "components/once.toml": f"""name = "once"
type = "job"
namespace = "{namespace}"
image_url = "{_IMAGE % ("built", "repository")}"
tag = "{_IMAGE % ("built", "tag")}"
cmd = ["/app"]
dependencies = ["web"]
[env_vars]
PASSWORD = "{_SECRET}"
""",
    }


def _write_rest(namespace: str) -> Mapping[str, str]:
    return {
        "metadata.toml": 'version = "v2"\ndisplay_name = "All"\ndescription = "Every type."\n',
        "runner.toml": 'runner_type = "local"\n',
        "sandbox.toml": f"""terraform_version = "1.11.0"
{_REPO.format(folder="modules/base")}""",
        "modules/base/main.tf": 'resource "terraform_data" "base" { input = "base" }\n',
        "modules/sizing/main.tf": """variable "password" {
  type      = string
  sensitive = true
}
resource "terraform_data" "kept" { input = var.password }
output "replicas" { value = "2" }
output "password" {
  value     = terraform_data.kept.output
  sensitive = true
}
""",
        "built/Dockerfile": 'FROM scratch\nCOPY app.txt /app.txt\nCMD ["/app"]\n',
        "built/app.txt": "hello\n",
        "charts/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
        "charts/web/values.yaml": "replicas: 1\n",
        "charts/web/templates/all.yaml": _CHART,
        "manifests/store.yaml": _STORE,
        "secrets.toml": f"""[[secret]]
name = "admin_password"
display_name = "Password"
description = "Of the administrator."
required = true
[[secret.kubernetes_sync_targets]]
namespaces = ["{namespace}", "{namespace}-tools"]
name = "admin"
key = "password"
[[secret]]
name = "registry_username"
display_name = "User"
description = "Of the registry."
required = true
[[secret]]
name = "registry_password"
display_name = "Password"
description = "Of the registry."
required = true
""",
        "actions/check.toml": f"""name = "check"
timeout = "1m"
[[triggers]]
type = "post-deploy-component"
component_name = "web"
[[steps]]
name = "ask"
inline_contents = '''
#!/bin/sh
set -eu
printf 'it is %s\\n' "$PASSWORD"
kubectl --namespace {namespace} get secret admin -o 'jsonpath={{.data.password}}'
kubectl --namespace {namespace} create configmap of-an-action
kubectl --namespace {namespace} delete configmap of-an-action
'''
[steps.env_vars]
PASSWORD = "{_SECRET}"
""",
    }


_CHART = """apiVersion: v1
kind: Secret
metadata: {name: web}
stringData: {password: {{ .Values.password | toJson }}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "{{ .Release.Namespace }}-reader"}
rules: []
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: {{ .Values.image | toJson }}}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, annotations: {helm.sh/hook: "post-install,post-upgrade"}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: app, image: {{ .Values.image | toJson }}}]
"""
_STORE = f"""apiVersion: v1
kind: Secret
metadata: {{name: store}}
stringData: {{password: "{_SECRET}"}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: store, annotations: {{exclave.dev/wait: none}}}}
spec:
  serviceName: store
  selector: {{matchLabels: {{app: store}}}}
  template:
    metadata: {{labels: {{app: store}}}}
    spec: {{containers: [{{name: app, image: "{_IMAGE % ("built", "ref")}"}}]}}
  volumeClaimTemplates:
  - metadata: {{name: data}}
    spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}
"""
