"""An app of 30 components: Terraform feeds manifests, charts stand on those, jobs come last."""

from collections.abc import Mapping

from tests.faults.terraform_app import BARE

MODULES, MANIFESTS, CHARTS, JOBS = 4, 14, 8, 4
COUNT = MODULES + MANIFESTS + CHARTS + JOBS
LAST = f"web{CHARTS}"
"""The only component that reads an input, from a chart of its own."""
NAMESPACE = "PREFIX-{{ .nuon.install.name }}"
MODULE = """name = "NAME"
type = "terraform_module"

[public_repo]
repo = "."
directory = "size"

[vars]
size = "NUMBER"
"""
MANIFEST = """name = "NAME"
type = "kubernetes_manifest"
namespace = "NAMESPACE"
manifest = '''
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME}
data: {size: "{{ .nuon.components.NEEDED.outputs.size }}"}
'''
"""
CHART = """name = "NAME"
type = "helm_chart"
chart_name = "mixed-NAME"
namespace = "NAMESPACE"
dependencies = ["NEEDED"]

[public_repo]
repo = "."
directory = "FOLDER"

[values]
text = "TEXT"
"""
JOB = """name = "NAME"
type = "job"
namespace = "NAMESPACE"
image_url = "shop/tool"
tag = "1"
cmd = ["migrate"]
dependencies = ["NEEDED"]
"""
TEMPLATE = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  selector: {matchLabels: {app: "{{ .Release.Name }}"}}
  template:
    metadata:
      labels: {app: "{{ .Release.Name }}"}
      annotations: {text: {{ .Values.text | quote }}, version: "one"}
    spec: {containers: [{name: app, image: "shop/app:1"}]}
"""
INPUTS = """[[group]]
name = "all"

[[input]]
name = "greeting"
group = "all"
default = "hello"
"""
TERRAFORM = """variable "size" { type = string }
resource "terraform_data" "it" { input = var.size }
output "size" { value = terraform_data.it.output }
"""
GREETING = "{{ .nuon.inputs.inputs.greeting }}"


def list_needs() -> Mapping[str, str]:
    """Return which component each one stands on; Terraform stands on none."""
    conf = {f"conf{n}": f"size{n % MODULES + 1}" for n in range(1, MANIFESTS + 1)}
    web = {f"web{n}": f"conf{n}" for n in range(1, CHARTS + 1)}
    task = {f"task{n}": f"web{n}" for n in range(1, JOBS + 1)}
    return {**conf, **web, **task}


def list_files(prefix: str) -> dict[str, str]:
    """Return the files of the app; its installs go to namespaces that begin with the prefix."""
    texts = {f"size{n}": MODULE.replace("NUMBER", str(n)) for n in range(1, MODULES + 1)}
    for name, needed in list_needs().items():
        kind = {"c": MANIFEST, "w": CHART, "t": JOB}[name[0]]
        texts[name] = kind.replace("NEEDED", needed)
    texts[LAST] = texts[LAST].replace("FOLDER", "last").replace("TEXT", GREETING)
    place = NAMESPACE.replace("PREFIX", prefix)
    charts = {
        f"{folder}/{path}": text
        for folder in ("web", "last")
        for path, text in (
            ("Chart.yaml", f"apiVersion: v2\nname: {folder}\nversion: 1.0.0\n"),
            ("templates/web.yaml", TEMPLATE),
        )
    }
    components = {
        f"components/{name}.toml": text.replace("NAMESPACE", place)
        .replace("NAME", name)
        .replace("FOLDER", "web")
        .replace("TEXT", "fixed")
        for name, text in texts.items()
    }
    return {**BARE, "inputs.toml": INPUTS, "size/main.tf": TERRAFORM, **charts, **components}
