"""The Terraform module of a Stack."""

from collections.abc import Mapping

from exclave.stacks.aws.document import has_registry
from exclave.stacks.aws.parameters import list_parameters
from exclave.stacks.aws.references import ResourceRef
from exclave.stacks.aws.resources import DOCUMENT, RUNNER_GROUP, SEAL, get_arn
from exclave.stacks.aws.terraform.builder import ModuleBuilder
from exclave.stacks.aws.terraform.expressions import write_value
from exclave.stacks.aws.terraform.machine import add_machine, add_registry
from exclave.stacks.aws.terraform.nested import add_nested
from exclave.stacks.aws.terraform.network import add_network, add_security_group
from exclave.stacks.aws.terraform.roles import add_roles
from exclave.stacks.aws.terraform.secrets import add_document, add_secrets
from exclave.stacks.aws.terraform.variables import add_variable
from exclave.stacks.model import StackModel

TERRAFORM = ">= 1.11"
PROVIDER = ">= 5.92, < 7"
CONDITIONS = {
    "stopped": "!var.runner_enabled",
    "runner_enabled": "var.runner_enabled",
    "plan_only": 'var.runner_mode == "plan-only"',
    "new_vpc": 'var.vpc_id == ""',
    "has_boundary": 'var.permissions_boundary_arn != ""',
    "has_key": 'var.kms_key_arn != ""',
    "has_ca_bundle": 'var.ca_bundle_parameter != ""',
    "session_manager_on": "var.session_manager",
}
"""The conditions of the CloudFormation form; that of a role is its variable."""
FACTS = {
    "account_id": "data.aws_caller_identity.current.account_id",
    "partition": "data.aws_partition.current.partition",
    "domain": "data.aws_partition.current.dns_suffix",
    "region": "data.aws_region.current.name",
}


def build_module(model: StackModel) -> ModuleBuilder:
    """Return the module of a model."""
    builder = ModuleBuilder()
    _add_settings(builder)
    builder.open_file("variables")
    for parameter in list_parameters(model):
        add_variable(builder, parameter)
    builder.open_file("network")
    add_network(builder, model)
    add_security_group(builder, model)
    builder.open_file("roles")
    add_roles(builder, model)
    if model.nested:
        builder.open_file("nested")
    nested = add_nested(builder, model)
    builder.open_file("secrets")
    add_secrets(builder, model)
    builder.open_file("machine")
    add_document(builder, model, nested)
    if has_registry(model):
        add_registry(builder, model)
    add_machine(builder, model)
    builder.open_file("outputs")
    _add_outputs(builder)
    return builder


def write_files(model: StackModel) -> Mapping[str, str]:
    """Return the text of the files of the module, by their names."""
    return build_module(model).write_files()


def _add_settings(builder: ModuleBuilder) -> None:
    builder.open_file("main")
    builder.add_settings(TERRAFORM, {"aws": {"source": "hashicorp/aws", "version": PROVIDER}})
    for name in ("aws_caller_identity", "aws_partition", "aws_region"):
        builder.add_data(name, "current", {})
    for name, expression in {**FACTS, **CONDITIONS}.items():
        builder.add_local(name, f"${{{expression}}}")


def _add_outputs(builder: ModuleBuilder) -> None:
    builder.add_output("outputs", "What the app reads of this Stack", "${local.document.outputs}")
    for name, about, reference in (
        ("runner_group_name", "The group of one machine", ResourceRef(RUNNER_GROUP)),
        ("stack_document_arn", "What the runner reads", get_arn(DOCUMENT)),
        ("seal_secret_arn", "Outlives this Stack by 30 days", get_arn(SEAL)),
    ):
        builder.add_output(name, about, str(write_value(reference)))
