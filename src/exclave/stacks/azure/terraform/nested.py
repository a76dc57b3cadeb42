"""The vendor's own templates in Terraform: deployments of Azure Resource Manager."""

import json
from collections.abc import Mapping

from exclave.stacks.azure.document import NestedOutputs
from exclave.stacks.azure.names import list_tags
from exclave.stacks.azure.nested import plan_nested
from exclave.stacks.azure.references import Fact, Native, Node, Text
from exclave.stacks.azure.terraform.builder import ModuleBuilder
from exclave.stacks.azure.terraform.expressions import read_attribute
from exclave.stacks.model import StackModel
from exclave.stacks.terraform.text import quote


def add_nested(builder: ModuleBuilder, model: StackModel) -> NestedOutputs:
    """Add the vendor's templates; return their outputs by the names of the templates."""
    outputs: dict[str, Mapping[str, Text]] = {}
    for plan in plan_nested(model):
        values = {name: {"value": value} for name, value in plan.values.items()}
        arguments: dict[str, Node] = {
            "name": plan.resource.title[0],
            "resource_group_name": Fact.GROUP,
            "deployment_mode": "Incremental",
            "template_content": json.dumps(plan.template),
            "parameters_content": json.dumps(values),
            "tags": list_tags(model),
        }
        builder.add(plan.resource, arguments)
        content = f"jsondecode({read_attribute(plan.resource, 'output_content')})"
        outputs[plan.nested.name] = {
            name: Native(_write_text(f'{content}["{quote(name)}"].value')) for name in plan.outputs
        }
    return outputs


def _write_text(value: str) -> str:
    """Return an output as a text: JSON, unless it is one."""
    return f"try(tostring({value}), jsonencode({value}))"
