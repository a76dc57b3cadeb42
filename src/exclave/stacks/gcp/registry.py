"""The repository for the app's images, where the app reads one from its Stack."""

from exclave.base.json_values import JsonObject
from exclave.domain.stacks import RoleKind
from exclave.stacks.gcp.accounts import name_account, needs_nodes
from exclave.stacks.gcp.expressions import ONLY_FULL, PROJECT, REGION, write_member
from exclave.stacks.gcp.names import NODES, list_labels, write_prefix
from exclave.stacks.model import StackModel
from exclave.stacks.terraform.module_files import ModuleFiles

_TYPE = "google_artifact_registry_repository"
_REPOSITORY = f"{_TYPE}.registry.repository_id"


def has_registry(model: StackModel) -> bool:
    """Return whether the app reads a repository for its images from the Stack."""
    return any(name.split(".", 1)[0] == "registry" for name in model.wanted_outputs)


def add_registry(files: ModuleFiles, model: StackModel) -> None:
    """Add the repository that the app's images are copied to, which maintenance may write to."""
    place: JsonObject = {"project": PROJECT, "location": REGION}
    body: JsonObject = {
        **place,
        "repository_id": write_prefix(model),
        "format": "DOCKER",
        "docker_config": [{"immutable_tags": True}],
        "labels": dict(list_labels(model)),
        "depends_on": ["google_project_service.apis"],
    }
    files.add_block("resource", _TYPE, "registry", body)
    members = [
        (f"registry_{name_account(role)}", "writer", name_account(role), {"count": ONLY_FULL})
        for role in model.list_roles(RoleKind.MAINTENANCE)
    ]
    if needs_nodes(model):
        members.append((f"registry_{NODES}", "reader", NODES, {}))
    for name, verb, account, count in members:
        member: JsonObject = {
            **count,
            **place,
            "repository": f"${{{_REPOSITORY}}}",
            "role": f"roles/artifactregistry.{verb}",
            "member": write_member(account),
        }
        files.add_block("resource", f"{_TYPE}_iam_member", name, member)


def describe_registry() -> JsonObject:
    """Return the repository as the app reads it."""
    return {
        "url": f"{REGION}-docker.pkg.dev",
        "repository": f"{PROJECT}/${{{_REPOSITORY}}}",
    }
