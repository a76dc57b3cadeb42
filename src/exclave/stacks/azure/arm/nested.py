"""The vendor's own templates in a template: deployments of their own."""

from collections.abc import Mapping

from exclave.base.json_values import Json
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
    """Add one; what its expressions mean is decided within it, not here."""
    builder.add(plan.resource, {})
    body = builder.resources[-1]
    values: Json = {name: {"value": write_value(value)} for name, value in plan.values.items()}
    if isinstance(body, dict):
        body["properties"] = {
            "mode": "Incremental",
            "expressionEvaluationOptions": {"scope": "inner"},
            "parameters": values,
            "template": plan.template,
        }


def _write_output(resource: Resource, name: str, type_: str) -> str:
    """Return an output as a text: JSON, unless it is one."""
    deployment = f"reference({write_id(resource)}, {quote(VERSIONS[DEPLOYMENT])})"
    text = f"string({deployment}.outputs[{quote(name)}].value)"
    return f"toLower({text})" if type_ == "bool" else text
