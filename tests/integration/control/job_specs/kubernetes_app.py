"""An app of every type that goes to a cluster, and the parts of its install."""

from sqlalchemy import update

from exclave.base.json_values import JsonObject
from exclave.control.install_state.state import write_state
from exclave.domain.install_state import StateDocument
from exclave.domain.installs import InstallPart, PartState
from exclave.storage import install_parts
from exclave.storage.tables.installs import app_installs
from tests.support.install_fixture import InstallFixture

FILES = {
    "components/web.toml": """
name = "web"
type = "docker_build"
dockerfile = "Dockerfile"
[public_repo]
repo = "."
directory = "modules/page"
""",
    "components/page.toml": """
name = "page"
type = "helm_chart"
chart_name = "page-chart"
namespace = "{{ .nuon.install.id }}"
[public_repo]
repo = "."
directory = "modules/page"
[values]
"image.tag" = "{{ .nuon.components.web.outputs.image.tag }}"
password = "{{ .nuon.secrets.database_password.arn }}"
[[values_file]]
contents = "port: {{ .nuon.inputs.inputs.port }}"
""",
    "components/texts.toml": """
name = "texts"
type = "kubernetes_manifest"
namespace = "shop"
kubernetes_context = "edge"
manifest = '''
apiVersion: v1
kind: ConfigMap
metadata: {name: texts}
data: {api: "{{ .nuon.components.api.outputs.address }}"}
'''
[[operation_roles]]
operation = "teardown"
role = "{{ .nuon.install.name }}-remove"
""",
    "kubernetes_contexts.toml": """
[[kubernetes_context]]
name = "edge"
component = "network"
""",
    "permissions/page.toml": """
type = "custom"
name = "{{ .nuon.install.name }}-page"
description = "Deploys the page."
display_name = "Page"
[[policies]]
managed_policy_name = "ReadOnlyAccess"
""",
    "permissions/all.toml": """
type = "custom"
name = "{{ .nuon.install.name }}-all"
description = "Deploys everything."
display_name = "All"
[[policies]]
managed_policy_name = "ReadOnlyAccess"
""",
    "operation_roles.toml": """
[[rules]]
principal = "nuon::component:*"
operation = "deploy"
role = "{{ .nuon.install.name }}-all"
[[rules]]
principal = "nuon::component:page"
operation = "deploy"
role = "{{ .nuon.install.name }}-page"
""",
}


async def list_states(life: InstallFixture) -> dict[str, PartState]:
    parts = await life.deps.db.read(
        lambda tx: install_parts.list_parts(tx, life.user.org, life.install)
    )
    return {part.name: part.state for part in parts}


async def find_part(life: InstallFixture, name: str) -> InstallPart:
    parts = await life.deps.db.read(
        lambda tx: install_parts.list_parts(tx, life.user.org, life.install)
    )
    return next(part for part in parts if part.name == name)


async def move_to_aws(life: InstallFixture) -> None:
    """Let the install be one in a cloud whose Stack this version cannot make yet."""
    mine = (app_installs.c.org_id == life.user.org, app_installs.c.install_id == life.install)
    await life.deps.db.write(
        lambda tx: tx.run(update(app_installs).where(*mine).values(target="aws"))
    )


async def report_cluster(life: InstallFixture) -> None:
    """Let the Stack report that it knows a kubeconfig."""

    def change(document: StateDocument) -> None:
        clusters: JsonObject = {"default": {"reachable": True, "version": "v1.34.4"}}
        document["install_stack"]["outputs"] = {"kubernetes": clusters}

    await life.deps.db.write(
        lambda tx: write_state(tx, life.user.org, life.install, "stack", change)
    )
