"""Vaults, secrets and the document in a template."""

from exclave.stacks.azure.arm.builder import TemplateBuilder
from exclave.stacks.azure.arm.expressions import (
    is_late,
    quote,
    write_late,
    write_object,
    write_text_value,
)
from exclave.stacks.azure.document import (
    NestedOutputs,
    build_outputs,
    build_stack_document,
    has_registry,
)
from exclave.stacks.azure.machine import BLANK, GIVEN_CODE, SEAL_DAYS, SECRET_DAYS
from exclave.stacks.azure.names import list_tags
from exclave.stacks.azure.parameters import build_input_parameter, build_secret_parameter
from exclave.stacks.azure.references import Body, Fact, Native, Node, ParameterRef, Resource
from exclave.stacks.azure.resources import (
    CA_BUNDLE,
    IMAGE_REGISTRY,
    RUNNER_VAULT,
    SECRET_VAULT,
    STACK_DOCUMENT,
    list_identities,
    name_input,
    name_secret,
)
from exclave.stacks.model import StackModel

OUTPUTS = "outputs"


def add_vaults(builder: TemplateBuilder, model: StackModel) -> None:
    """Add the vault of the runner and that of the app, with what the customer gives."""
    _add_vault(builder, model, RUNNER_VAULT, SEAL_DAYS)
    _add_vault(builder, model, SECRET_VAULT, SECRET_DAYS)
    certificates = ParameterRef("caBundle")
    _add_secret(builder, model, CA_BUNDLE, certificates, RUNNER_VAULT)
    for secret in model.secrets:
        if not secret.auto_generate:
            parameter = build_secret_parameter(secret).name
            _add_secret(builder, model, name_secret(secret), _or_blank(parameter), SECRET_VAULT)
    for item in model.inputs:
        if item.sensitive:
            parameter = build_input_parameter(item).name
            _add_secret(builder, model, name_input(item), _or_blank(parameter), SECRET_VAULT)


def add_document(
    builder: TemplateBuilder,
    model: StackModel,
    nested: NestedOutputs,
    log: Native,
    *after: Resource,
) -> None:
    """Add the document that the runner reads; what is known early of it is in variables."""
    document, outputs = build_stack_document(model, nested, log), build_outputs(model)
    rest = {name: value for name, value in document.items() if name != OUTPUTS}
    builder.variables["document"] = write_text_value(_pick(rest, is_wanted_late=False))
    builder.variables[OUTPUTS] = write_text_value(_pick(outputs, is_wanted_late=False))
    late = {n: write_late(v) for n, v in _pick(rest, is_wanted_late=True).items()}
    late[OUTPUTS] = write_outputs(outputs)
    value = f"string(union(variables('document'), {write_object(late)}))"
    made = (RUNNER_VAULT, *list_identities(model), *after)
    _add_secret(builder, model, STACK_DOCUMENT, Native(value), *made)


def write_outputs(outputs: Body) -> str:
    """Return all outputs as an expression."""
    late = {n: write_late(v) for n, v in _pick(outputs, is_wanted_late=True).items()}
    return f"union(variables('outputs'), {write_object(late)})"


def add_registry(builder: TemplateBuilder, model: StackModel) -> None:
    """Add the registry that the app's images are copied to, if the app reads it."""
    if has_registry(model):
        body: Body = {
            "location": Fact.LOCATION,
            "tags": list_tags(model),
            "sku": {"name": "Basic"},
            "properties": {"adminUserEnabled": False, "anonymousPullEnabled": False},
        }
        builder.add(IMAGE_REGISTRY, body)


def _add_vault(builder: TemplateBuilder, model: StackModel, vault: Resource, days: int) -> None:
    properties: dict[str, Node] = {
        "tenantId": Fact.TENANT,
        "sku": {"family": "A", "name": "standard"},
        "enableRbacAuthorization": True,
        "enableSoftDelete": True,
        "softDeleteRetentionInDays": days,
        "enablePurgeProtection": True,
        "enabledForDeployment": False,
        "enabledForTemplateDeployment": False,
        "enabledForDiskEncryption": False,
        "publicNetworkAccess": "Enabled",
    }
    tags = list_tags(model)
    builder.add(vault, {"location": Fact.LOCATION, "tags": tags, "properties": properties})


def _add_secret(
    builder: TemplateBuilder, model: StackModel, resource: Resource, value: Node, *after: Resource
) -> None:
    properties: dict[str, Node] = {"value": value, "contentType": GIVEN_CODE}
    builder.add(resource, {"tags": list_tags(model), "properties": properties}, after=after)


def _or_blank(parameter: str) -> Native:
    value = f"parameters({quote(parameter)})"
    return Native(f"if(empty({value}), '{BLANK}', {value})")


def _pick(entries: Body, *, is_wanted_late: bool) -> Body:
    return {name: value for name, value in entries.items() if is_late(value) == is_wanted_late}
