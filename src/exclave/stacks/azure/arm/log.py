"""The store of the runner's log in a template: a deployment of its own."""

from exclave.base.json_values import Json
from exclave.stacks.azure.arm.builder import TemplateBuilder
from exclave.stacks.azure.arm.expressions import write_value
from exclave.stacks.azure.arm.nested import deploy_template, read_output
from exclave.stacks.azure.log import STREAM, VALUES, build_log_template
from exclave.stacks.azure.references import Native
from exclave.stacks.azure.resources import name_log
from exclave.stacks.model import StackModel


def add_log(builder: TemplateBuilder, model: StackModel) -> Native:
    """Add the store; return where the runner posts its lines."""
    values: dict[str, Json] = {name: write_value(value) for name, value in VALUES.items()}
    deploy_template(builder, name_log(model), build_log_template(model), values)
    return Native(read_output(name_log(model), STREAM))
