"""The vendor's own templates in CloudFormation: a part of the one template."""

from collections.abc import Mapping

from exclave.base.json_values import JsonObject
from exclave.stacks.aws.cloudformation.builder import TemplateBuilder
from exclave.stacks.aws.document import NestedOutputs
from exclave.stacks.aws.nested import NestedPlan, plan_nested
from exclave.stacks.aws.references import Native, Text, When
from exclave.stacks.model import StackModel


def add_nested(builder: TemplateBuilder, model: StackModel) -> NestedOutputs:
    """Add the vendor's templates; return their outputs by the names of the templates."""
    outputs: dict[str, Mapping[str, Text]] = {}
    for plan in plan_nested(model):
        builder.parameters.update(plan.declared)
        if plan.is_file:
            outputs[plan.nested.name] = _add_parts(builder, plan)
        else:
            outputs[plan.nested.name] = _add_stack(builder, plan)
    return outputs


def _add_parts(builder: TemplateBuilder, plan: NestedPlan) -> Mapping[str, Text]:
    builder.mappings.update(plan.flat.mappings)
    builder.conditions.update(plan.flat.conditions)
    builder.resources.update(plan.flat.resources)
    return {name: _write_output(output) for name, output in plan.flat.outputs.items()}


def _write_output(output: JsonObject) -> Text:
    value = Native(output["Value"])
    condition = output.get("Condition")
    return When(condition, value, "") if isinstance(condition, str) else value


def _add_stack(builder: TemplateBuilder, plan: NestedPlan) -> Mapping[str, Text]:
    """Add a template at an address, as a stack of its own."""
    parameters = plan.given or None
    builder.add(plan.resource, {"TemplateURL": plan.nested.address, "Parameters": parameters})
    return {
        name: Native({"Fn::GetAtt": [plan.resource.name, f"Outputs.{name}"]})
        for name in plan.flat.outputs
    }
