"""Secrets of the app, the seal and the document in Secret Manager.

In the form for Terraform, values that the customer gives are write-only: they are in no plan and in
no state. In the form for Infrastructure Manager, which keeps what it is given, they are no
variables at all: the customer adds them to the secrets. The runner makes those that are generated.
"""

from typing import Final

from exclave.base.json_values import Json, JsonObject
from exclave.domain.stacks import RoleKind
from exclave.stacks.gcp.accounts import name_account, write_custom_role
from exclave.stacks.gcp.expressions import ONLY_FULL, PROJECT, REGION, write_member, write_secret
from exclave.stacks.gcp.names import RUNNER, list_labels, name_input, name_secret, write_secret_id
from exclave.stacks.gcp.variables import (
    Variable,
    build_input_variable,
    build_secret_variable,
)
from exclave.stacks.model import StackModel
from exclave.stacks.terraform.module_files import ModuleFiles
from exclave.stacks.terraform.text import escape

SEAL: Final = "seal"
DOCUMENT: Final = "stack"
_ADDER: Final = "roles/secretmanager.secretVersionAdder"
_BLANK: Final = " "
"""What stands for a value that is not given: a version of a secret cannot be empty."""
_ENCRYPTION: Final = "customer_managed_encryption"
_KEY: Final = f"${{{_ENCRYPTION}.value}}"
_FIRST_NEW: Final[JsonObject] = {"create_before_destroy": True}
"""So that there is a newest version at every moment."""


def add_secrets(files: ModuleFiles, model: StackModel, *, with_values: bool) -> None:
    """Add a place for each secret and sensitive input, and the seal."""
    for secret in model.secrets:
        name = name_secret(secret)
        _add_place(files, model, name)
        _let_jobs_read(files, model, name)
        if secret.auto_generate:
            _let_runner_add(files, name)
        else:
            _add_value(files, name, build_secret_variable(secret), with_values=with_values)
    for item in model.inputs:
        if item.sensitive:
            name = name_input(item)
            _add_place(files, model, name)
            _add_value(files, name, build_input_variable(item), with_values=with_values)
    _add_place(files, model, SEAL, {"deletion_protection": "${var.keep_seal}"})
    _let_runner_add(files, SEAL)


def add_ca_bundle(files: ModuleFiles) -> None:
    """Let the machine read the certificates that the customer names."""
    body: JsonObject = {
        "count": '${var.ca_bundle == "" ? 0 : 1}',
        "secret_id": "${var.ca_bundle}",
        "role": "roles/secretmanager.secretAccessor",
        "member": write_member(RUNNER),
    }
    files.add_block("resource", "google_secret_manager_secret_iam_member", "ca_bundle", body)


def add_document(files: ModuleFiles, model: StackModel, document: JsonObject) -> None:
    """Add the document that the runner reads."""
    files.add_local("document", document)
    _add_place(files, model, DOCUMENT)
    body: JsonObject = {
        "secret": write_secret(DOCUMENT),
        "secret_data": "${jsonencode(local.document)}",
        "lifecycle": _FIRST_NEW,
    }
    files.add_block("resource", "google_secret_manager_secret_version", DOCUMENT, body)


def _add_place(
    files: ModuleFiles, model: StackModel, name: str, more: JsonObject | None = None
) -> None:
    """Add a secret without a value, in the region only; the runner may read it."""
    key: Json = {"for_each": "${local.keys}", "content": [{"kms_key_name": _KEY}]}
    replicas: Json = {"location": REGION, "dynamic": {_ENCRYPTION: [key]}}
    body: JsonObject = {
        "project": PROJECT,
        "secret_id": write_secret_id(model, name),
        "labels": dict(list_labels(model)),
        "replication": [{"user_managed": [{"replicas": [replicas]}]}],
        "depends_on": ["google_project_service.apis"],
        **(more or {}),
    }
    files.add_block("resource", "google_secret_manager_secret", name, body)
    _bind(files, name, f"{name}_runner", write_custom_role("read_secrets"), RUNNER)


def _add_value(files: ModuleFiles, name: str, variable: Variable, *, with_values: bool) -> None:
    """Add the value that the customer gives; it stays until the version beside it is raised.

    Without such values, the app's default is added if there is one: it is no secret.
    """
    value = f"var.{variable.name}"
    body: JsonObject = {"secret": write_secret(name), "lifecycle": _FIRST_NEW}
    if with_values:
        body = {
            **body,
            "secret_data_wo": f'${{{value} == "" ? "{_BLANK}" : {value}}}',
            "secret_data_wo_version": f"${{{value}_version}}",
        }
    elif variable.default:
        body = {**body, "secret_data": escape(variable.default)}
    else:
        return
    files.add_block("resource", "google_secret_manager_secret_version", name, body)


def _let_runner_add(files: ModuleFiles, name: str) -> None:
    _bind(files, name, f"{name}_runner_adds", _ADDER, RUNNER)


def _let_jobs_read(files: ModuleFiles, model: StackModel, name: str) -> None:
    """Let the roles that deploy read a secret of the app."""
    for role in model.roles:
        if role.kind in (RoleKind.PROVISION, RoleKind.MAINTENANCE):
            account = name_account(role)
            what = write_custom_role("read_secrets")
            _bind(files, name, f"{name}_{account}", what, account, ONLY_FULL)


def _bind(
    files: ModuleFiles, secret: str, name: str, role: str, account: str, count: str = ""
) -> None:
    body: JsonObject = {
        **({"count": count} if count else {}),
        "project": PROJECT,
        "secret_id": f"${{google_secret_manager_secret.{secret}.secret_id}}",
        "role": role,
        "member": write_member(account),
    }
    files.add_block("resource", "google_secret_manager_secret_iam_member", name, body)
