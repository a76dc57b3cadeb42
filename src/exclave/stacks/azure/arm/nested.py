"""The vendor's own templates in a template: deployments of their own."""

from collections.abc import Mapping

from exclave.base.json_values import Json, JsonObject
from exclave.stacks.azure.arm.builder import VERSIONS, TemplateBuilder
from exclave.stacks.azure.arm.expressions import quote, write_id, write_value
from exclave.stacks.azure.document import NestedOutputs
from exclave.stacks.azure.nested import NestedPlan, plan_nested
from exclave.stacks.azure.references import Native, Resource, Text
from exclave.stacks.azure.resources import DEPLOYMENT
from exclave.stacks.model import StackModel


def add_nested(builder: TemplateBuilder, model: StackModel) -> NestedOutputs:
    """Add the vendor's templates; return their outputs by the names of the templates."""
    outputs: dict[str, Mapping[str, Text]] = {}
    for plan in plan_nested(model):
        _add(builder, plan)
        outputs[plan.nested.name] = {
            name: Native(_write_output(plan.resource, name, type_))
            for name, type_ in plan.outputs.items()
        }
    return outputs


def _add(builder: TemplateBuilder, plan: NestedPlan) -> None:
    values = {name: write_value(value) for name, value in plan.values.items()}
    deploy_template(builder, plan.resource, plan.template, values)


def deploy_template(
    builder: TemplateBuilder,
    resource: Resource,
    template: JsonObject,
    values: Mapping[str, Json],
) -> None:
    """Add a template with its values; what its expressions mean is decided within it, not here."""
    builder.add(resource, {})
    body = builder.resources[-1]
    if isinstance(body, dict):
        body["properties"] = {
            "mode": "Incremental",
            "expressionEvaluationOptions": {"scope": "inner"},
            "parameters": {name: {"value": value} for name, value in values.items()},
            "template": template,
        }


def read_output(resource: Resource, name: str) -> str:
    """Return an output of a template that is deployed."""
    deployment = f"reference({write_id(resource)}, {quote(VERSIONS[DEPLOYMENT])})"
    return f"{deployment}.outputs[{quote(name)}].value"


def _write_output(resource: Resource, name: str, type_: str) -> str:
    """Return an output as a text: JSON, unless it is one."""
    text = f"string({read_output(resource, name)})"
    return f"toLower({text})" if type_ == "bool" else text
