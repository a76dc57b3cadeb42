"""Places of secrets, the seal and the document in CloudFormation."""

from collections.abc import Mapping

from exclave.stacks.aws.cloudformation.builder import TemplateBuilder, write_tags
from exclave.stacks.aws.cloudformation.intrinsics import write_substitution
from exclave.stacks.aws.cloudformation.json_text import list_json_texts
from exclave.stacks.aws.document import NestedOutputs, build_stack_document
from exclave.stacks.aws.names import list_guarded_tags, list_tags
from exclave.stacks.aws.parameters import build_input_parameter, build_secret_parameter
from exclave.stacks.aws.references import Native, Node, ParameterRef, Resource, When
from exclave.stacks.aws.resources import DOCUMENT, SEAL, name_input, name_secret
from exclave.stacks.aws.secrets import (
    DOCUMENT_ABOUT,
    GENERATED_CHARACTERS,
    SEAL_ABOUT,
    SEAL_CHARACTERS,
    clean_about,
)
from exclave.stacks.model import InputModel, SecretModel, StackModel
from exclave.stacks.naming import write_camel


def add_secrets(builder: TemplateBuilder, model: StackModel) -> None:
    """Add a place for each secret and sensitive input; none has a name, for names stay reserved."""
    for secret in model.secrets:
        _add_secret(builder, model, secret)
    for item in model.inputs:
        if item.sensitive:
            _add_input(builder, model, item)
    seal = _generate(SEAL_CHARACTERS)
    tags = list_guarded_tags(model)
    kept = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
    _add(builder, SEAL, SEAL_ABOUT, {"GenerateSecretString": seal}, tags, **kept)


def add_document(builder: TemplateBuilder, model: StackModel, nested: NestedOutputs) -> None:
    """Add the document that the runner reads."""
    texts = tuple(list_json_texts(build_stack_document(model, nested)))
    value = {"SecretString": Native(write_substitution(texts))}
    _add(builder, DOCUMENT, DOCUMENT_ABOUT, value, list_guarded_tags(model))


def _add_secret(builder: TemplateBuilder, model: StackModel, secret: SecretModel) -> None:
    parameter = build_secret_parameter(secret).name
    value: dict[str, Node]
    if secret.auto_generate:
        value = {"GenerateSecretString": _generate(GENERATED_CHARACTERS)}
    else:
        given = f"Given{write_camel(secret.name)}"
        value = {"SecretString": When(given, ParameterRef(parameter))}
    tags = {"exclave:secret": secret.name, **list_tags(model)}
    _add(builder, name_secret(secret), secret.description or secret.title, value, tags)


def _add_input(builder: TemplateBuilder, model: StackModel, item: InputModel) -> None:
    parameter = build_input_parameter(item).name
    value = {"SecretString": When(f"Given{parameter}", ParameterRef(parameter))}
    tags = {"exclave:input": item.name, **list_tags(model)}
    _add(builder, name_input(item), item.description or item.title, value, tags)


def _add(
    builder: TemplateBuilder,
    resource: Resource,
    about: str,
    value: Mapping[str, Node],
    tags: Mapping[str, str],
    **attributes: str,
) -> None:
    key = {"KmsKeyId": When("HasKey", ParameterRef("KmsKeyArn"))}
    properties = {"Description": clean_about(about) or None, **value, **key}
    builder.add(resource, {**properties, "Tags": write_tags(tags)}, **attributes)


def _generate(characters: int) -> dict[str, Node]:
    return {"PasswordLength": characters, "ExcludePunctuation": True}
