"""The Terraform module of a Stack, for Terraform itself and for Infrastructure Manager."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from exclave.base.json_values import Json
from exclave.stacks.gcp.accounts import add_accounts
from exclave.stacks.gcp.document import build_document
from exclave.stacks.gcp.expressions import PROJECT
from exclave.stacks.gcp.machine import add_machine
from exclave.stacks.gcp.nested import add_nested
from exclave.stacks.gcp.network import add_firewall, add_network
from exclave.stacks.gcp.registry import add_registry, has_registry
from exclave.stacks.gcp.secrets import add_ca_bundle, add_document, add_secrets
from exclave.stacks.gcp.variables import add_variable, list_variables
from exclave.stacks.model import StackModel
from exclave.stacks.terraform.module_files import ModuleFiles

PROVIDER: Final = ">= 6.50, < 8"
APIS: Final = (
    "cloudresourcemanager", "compute", "iam", "iamcredentials", "logging", "secretmanager",
    "serviceusage",
)  # fmt: skip
_REGISTRY_API: Final = "artifactregistry"


class Form(StrEnum):
    """What applies the module."""

    TERRAFORM = "terraform"
    INFRASTRUCTURE_MANAGER = "infrastructure-manager"
    """It runs Terraform 1.5 and keeps the values of variables, so no secret is one."""


TERRAFORM: Final = {Form.TERRAFORM: ">= 1.11", Form.INFRASTRUCTURE_MANAGER: ">= 1.5.7"}


def build_module(model: StackModel, form: Form = Form.TERRAFORM) -> ModuleFiles:
    """Return the module of a model."""
    with_values = form is Form.TERRAFORM
    files = ModuleFiles()
    _add_settings(files, model, form)
    files.open_file("variables")
    for variable in list_variables(model):
        if with_values or not variable.is_secret:
            add_variable(files, variable)
    files.open_file("network")
    add_network(files, model)
    add_firewall(files, model)
    files.open_file("roles")
    add_accounts(files, model)
    if model.nested:
        files.open_file("nested")
    nested = add_nested(files, model)
    files.open_file("secrets")
    add_secrets(files, model, with_values=with_values)
    add_ca_bundle(files)
    files.open_file("machine")
    if has_registry(model):
        add_registry(files, model)
    add_document(files, model, build_document(model, nested))
    add_machine(files, model)
    files.open_file("outputs")
    _add_outputs(files)
    return files


def write_files(model: StackModel, form: Form = Form.TERRAFORM) -> Mapping[str, str]:
    """Return the text of the files of the module, by their names."""
    return build_module(model, form).write_files()


def _add_settings(files: ModuleFiles, model: StackModel, form: Form) -> None:
    files.open_file("main")
    files.add_settings(
        TERRAFORM[form], {"google": {"source": "hashicorp/google", "version": PROVIDER}}
    )
    files.add_local("keys", '${var.kms_key == "" ? [] : [var.kms_key]}')
    names = (*APIS, _REGISTRY_API) if has_registry(model) else APIS
    wanted: list[Json] = [f"{name}.googleapis.com" for name in sorted(names)]
    files.add_local("apis", wanted)
    body: dict[str, Json] = {
        "for_each": "${toset(local.apis)}",
        "project": PROJECT,
        "service": "${each.value}",
        "disable_on_destroy": False,
    }
    files.add_block("resource", "google_project_service", "apis", body)


def _add_outputs(files: ModuleFiles) -> None:
    group = "google_compute_region_instance_group_manager"
    for name, about, value in (
        ("outputs", "What the app reads of this Stack", "local.document.outputs"),
        ("runner_group_name", "The group of one machine", f"{group}.runner.name"),
        ("stack_document_id", "What the runner reads", "google_secret_manager_secret.stack.id"),
        ("seal_secret_id", "Without it no state of the app can be read", "local.document.seal"),
    ):
        files.add_output(name, about, f"${{{value}}}")
