"""The store of the runner's log in Terraform: a deployment of the template of the other form."""

import json

from exclave.stacks.azure.log import STREAM, VALUES, build_log_template
from exclave.stacks.azure.names import list_tags
from exclave.stacks.azure.references import Fact, Native, Node
from exclave.stacks.azure.resources import name_log
from exclave.stacks.azure.terraform.builder import ModuleBuilder
from exclave.stacks.azure.terraform.expressions import read_attribute, write_expression
from exclave.stacks.model import StackModel


def add_log(builder: ModuleBuilder, model: StackModel) -> Native:
    """Add the store; return where the runner posts its lines."""
    resource = name_log(model)
    values: Node = {name: {"value": value} for name, value in VALUES.items()}
    arguments: dict[str, Node] = {
        "name": resource.title[0],
        "resource_group_name": Fact.GROUP,
        "deployment_mode": "Incremental",
        "template_content": json.dumps(build_log_template(model)),
        "parameters_content": Native(f"jsonencode({write_expression(values)})"),
        "tags": list_tags(model),
    }
    builder.add(resource, arguments)
    content = f"jsondecode({read_attribute(resource, 'output_content')})"
    return Native(f"{content}.{STREAM}.value")
