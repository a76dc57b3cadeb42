"""The service accounts of a Stack: the runner's, those of the app's roles, and their rights."""

from collections.abc import Iterator
from typing import Final

from exclave.base.json_values import Json, JsonObject
from exclave.domain.stacks import RoleKind
from exclave.stacks.gcp.expressions import (
    ONLY_FULL,
    ONLY_PLAN,
    PROJECT,
    write_account,
    write_member,
)
from exclave.stacks.gcp.names import NODES, RUNNER, write_account_id, write_role_id
from exclave.stacks.gcp.variables import name_switch
from exclave.stacks.model import PolicyModel, RoleModel, StackModel
from exclave.stacks.terraform.module_files import ModuleFiles
from exclave.stacks.terraform.text import escape

TITLE: Final = 100
DESCRIPTION: Final = 256
IMPERSONATE: Final = ("iam.serviceAccounts.getAccessToken",)
WRITE_LOG: Final = ("logging.logEntries.create",)
READ_SECRETS: Final = ("secretmanager.versions.access", "secretmanager.versions.list")
BASIC: Final = frozenset({"roles/owner", "roles/editor", "roles/viewer"})
"""Roles that Google gives only without a condition."""
_NODE_ROLES: Final = ("roles/container.defaultNodeServiceAccount", "roles/artifactregistry.reader")
_UNTIL: Final = 'request.time < timestamp("${var.break_glass_until}")'
_UNTIL_APPLIED: Final = (
    '${var.runner_mode == "full" && timecmp(plantimestamp(), var.break_glass_until) < 0 ? 1 : 0}'
)
_APIS: Final[Json] = ["google_project_service.apis"]


def add_accounts(files: ModuleFiles, model: StackModel) -> None:
    """Add the runner's account, and one for each role that only the runner can take."""
    about = f"The machine of the runner of {model.install_id}"
    _add_account(files, model, RUNNER, "Exclave runner", about, "!var.runner_enabled")
    add_custom_role(files, model, "impersonate", "Take roles of the Stack", IMPERSONATE)
    add_custom_role(files, model, "read_secrets", "Read secrets of the Stack", READ_SECRETS)
    add_custom_role(files, model, "write_log", "Write the log of the runner", WRITE_LOG)
    log: JsonObject = {
        "project": PROJECT,
        "role": write_custom_role("write_log"),
        "member": write_member(RUNNER),
    }
    files.add_block("resource", "google_project_iam_member", f"{RUNNER}_log", log)
    for role in model.roles:
        off = f"!(var.runner_enabled && var.{name_switch(role)})"
        name = name_account(role)
        title = role.title or role.name
        _add_account(files, model, name, title, role.description, off, key=role.key)
        binding: JsonObject = {
            "service_account_id": write_account(name, "name"),
            "role": write_custom_role("impersonate"),
            "member": write_member(RUNNER),
        }
        files.add_block("resource", "google_service_account_iam_member", f"{name}_runner", binding)
        _add_rights(files, model, role)
    if needs_nodes(model):
        _add_nodes(files, model)


def needs_nodes(model: StackModel) -> bool:
    """Return whether the app reads an account for the nodes of its cluster."""
    return "gke_node_pool_sa_email" in model.wanted_outputs


def name_account(role: RoleModel) -> str:
    """Return the name of the resource of a role's account."""
    return f"role_{role.key}"


def add_custom_role(
    files: ModuleFiles, model: StackModel, name: str, title: str, permissions: tuple[str, ...]
) -> None:
    """Add a role of the project with certain permissions."""
    body: JsonObject = {
        "project": PROJECT,
        "role_id": write_role_id(model, name),
        "title": escape(title[:TITLE]),
        "permissions": sorted({escape(permission) for permission in permissions}),
        "depends_on": _APIS,
    }
    files.add_block("resource", "google_project_iam_custom_role", name, body)


def write_custom_role(name: str) -> str:
    """Return a role of the project as bindings name it."""
    return f"${{google_project_iam_custom_role.{name}.id}}"


def _add_account(
    files: ModuleFiles,
    model: StackModel,
    name: str,
    title: str,
    about: str,
    off: str,
    key: str = "",
) -> None:
    body: JsonObject = {
        "project": PROJECT,
        "account_id": write_account_id(model, key or name),
        "display_name": escape(title[:TITLE]),
        "description": escape(about[:DESCRIPTION]),
        "disabled": f"${{{off}}}" if off else False,
        "depends_on": _APIS,
    }
    files.add_block("resource", "google_service_account", name, body)


def _add_rights(files: ModuleFiles, model: StackModel, role: RoleModel) -> None:
    """Add what the app's policies give a role, and what plan-only gives it instead."""
    name = name_account(role)
    for index, permissions in enumerate(_list_permissions(role.policies)):
        title = f"{role.title or role.name} {index + 1}"
        add_custom_role(files, model, f"{name}_{index}", title, permissions)
        _bind(files, role, f"{name}_{index}", write_custom_role(f"{name}_{index}"), ONLY_FULL)
    named = dict.fromkeys(policy.gcp_role for policy in role.policies if policy.gcp_role)
    for index, gcp_role in enumerate(named):
        _bind(files, role, f"{name}_named_{index}", escape(gcp_role), ONLY_FULL)
    if role.kind is not RoleKind.BREAK_GLASS:  # Google takes no condition for this role
        _bind(files, role, f"{name}_plan_only", "roles/viewer", ONLY_PLAN)


def _list_permissions(policies: tuple[PolicyModel, ...]) -> Iterator[tuple[str, ...]]:
    yield from (policy.gcp_permissions for policy in policies if policy.gcp_permissions)


def _bind(files: ModuleFiles, role: RoleModel, name: str, gcp_role: str, count: str) -> None:
    """Bind a role of the cloud in the project; what is for emergencies has an end.

    Google takes no condition for basic roles: their end counts whenever the module is applied.
    """
    is_emergency = role.kind is RoleKind.BREAK_GLASS
    body: dict[str, Json] = {
        "count": _UNTIL_APPLIED if is_emergency and gcp_role in BASIC else count,
        "project": PROJECT,
        "role": gcp_role,
        "member": write_member(name_account(role)),
    }
    if is_emergency and gcp_role not in BASIC:
        body["condition"] = [{"title": "until", "expression": _UNTIL}]
    files.add_block("resource", "google_project_iam_member", name, body)


def _add_nodes(files: ModuleFiles, model: StackModel) -> None:
    """Add an account for nodes of clusters, which the roles that deploy may give to machines."""
    _add_account(files, model, NODES, "Nodes of the app's clusters", "", "")
    for index, gcp_role in enumerate(_NODE_ROLES):
        body: JsonObject = {"project": PROJECT, "role": gcp_role, "member": write_member(NODES)}
        files.add_block("resource", "google_project_iam_member", f"{NODES}_{index}", body)
    for role in model.roles:
        if role.kind in (RoleKind.PROVISION, RoleKind.MAINTENANCE):
            use: JsonObject = {
                "count": ONLY_FULL,
                "service_account_id": write_account(NODES, "name"),
                "role": "roles/iam.serviceAccountUser",
                "member": write_member(name_account(role)),
            }
            name = f"{NODES}_{name_account(role)}"
            files.add_block("resource", "google_service_account_iam_member", name, use)
