"""Places of secrets, the seal and the document in Terraform.

Values are ephemeral: they are in no plan and in no state. What is given stays as it is until the
version beside it is raised.
"""

from collections.abc import Mapping

from exclave.stacks.aws.document import NestedOutputs, build_stack_document
from exclave.stacks.aws.names import list_guarded_tags, list_tags, write_prefix
from exclave.stacks.aws.parameters import (
    StackParameter,
    build_input_parameter,
    build_secret_parameter,
)
from exclave.stacks.aws.references import Native, Node, ParameterRef, Resource, ResourceRef, When
from exclave.stacks.aws.resources import DOCUMENT, SEAL, name_input, name_secret
from exclave.stacks.aws.secrets import (
    DOCUMENT_ABOUT,
    GENERATED_CHARACTERS,
    SEAL_ABOUT,
    SEAL_CHARACTERS,
    clean_about,
)
from exclave.stacks.aws.terraform.builder import ModuleBuilder
from exclave.stacks.aws.terraform.expressions import write_document_text
from exclave.stacks.model import SecretModel, StackModel
from exclave.stacks.naming import fit_name, write_snake

KEPT_DAYS = 30
"""How long a deleted seal can be restored; AWS's longest."""
_NAME = 200
_KEY = When("HasKey", ParameterRef("KmsKeyArn"))
_BLANK = " "
"""What stands for a value that is not given: a version of a secret cannot be empty."""


def add_secrets(builder: ModuleBuilder, model: StackModel) -> None:
    """Add a place for each secret and sensitive input."""
    for secret in model.secrets:
        resource = name_secret(secret)
        about = secret.description or secret.title
        tags = {"exclave:secret": secret.name, **list_tags(model)}
        _add_place(builder, model, resource, about, tags)
        _add_secret_value(builder, secret, resource)
    for item in model.inputs:
        if item.sensitive:
            tags = {"exclave:input": item.name, **list_tags(model)}
            resource = name_input(item)
            _add_place(builder, model, resource, item.description or item.title, tags)
            _add_given_value(builder, resource, build_input_parameter(item))
    guarded = list_guarded_tags(model)
    _add_place(builder, model, SEAL, SEAL_ABOUT, guarded, kept_days=KEPT_DAYS)
    _add_generated_value(builder, SEAL, SEAL_CHARACTERS)


def add_document(builder: ModuleBuilder, model: StackModel, nested: NestedOutputs) -> None:
    """Add the document that the runner reads."""
    builder.add_local("document", write_document_text(build_stack_document(model, nested)))
    _add_place(builder, model, DOCUMENT, DOCUMENT_ABOUT, list_guarded_tags(model))
    value = Native("jsonencode(local.document)")
    arguments: dict[str, Node] = {"secret_id": ResourceRef(DOCUMENT), "secret_string": value}
    builder.add_resource("aws_secretsmanager_secret_version", "stack_document", arguments)


def _add_secret_value(builder: ModuleBuilder, secret: SecretModel, resource: Resource) -> None:
    if secret.auto_generate:
        _add_generated_value(builder, resource, GENERATED_CHARACTERS)
    else:
        _add_given_value(builder, resource, build_secret_parameter(secret))


def _add_place(
    builder: ModuleBuilder,
    model: StackModel,
    resource: Resource,
    about: str,
    tags: Mapping[str, str],
    kept_days: int = 0,
) -> None:
    """Add a secret without a value; a part of its name is random, for names stay reserved."""
    name = write_snake(resource.name).replace("_", "-")
    arguments: dict[str, Node] = {
        "name_prefix": fit_name(f"{write_prefix(model)}-{name}", _NAME) + "-",
        "description": clean_about(about) or None,
        "kms_key_id": _KEY,
        "recovery_window_in_days": kept_days,
        "tags": tags,
    }
    builder.add(resource, arguments)


def _add_generated_value(builder: ModuleBuilder, resource: Resource, characters: int) -> None:
    type_, name = "aws_secretsmanager_random_password", write_snake(resource.name)
    body = {"password_length": characters, "exclude_punctuation": True}
    builder.add_ephemeral(type_, name, body)
    value = Native(f"ephemeral.{type_}.{name}.random_password")
    _add_version(builder, resource, value, 1)


def _add_given_value(builder: ModuleBuilder, resource: Resource, parameter: StackParameter) -> None:
    variable = f"var.{parameter.variable}"
    value = Native(f'{variable} == "" ? "{_BLANK}" : {variable}')
    _add_version(builder, resource, value, Native(f"{variable}_version"))


def _add_version(builder: ModuleBuilder, resource: Resource, value: Node, version: Node) -> None:
    arguments: dict[str, Node] = {
        "secret_id": ResourceRef(resource),
        "secret_string_wo": value,
        "secret_string_wo_version": version,
    }
    builder.add_resource("aws_secretsmanager_secret_version", write_snake(resource.name), arguments)
