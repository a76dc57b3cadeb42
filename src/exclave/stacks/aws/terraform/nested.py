"""The vendor's own templates in Terraform: stacks of CloudFormation, for that is what they are."""

from collections.abc import Mapping

from exclave.base.json_values import JsonObject, object_or_empty
from exclave.stacks.aws.document import NestedOutputs
from exclave.stacks.aws.nested import NestedPlan, plan_nested
from exclave.stacks.aws.parameters import StackParameter, list_parameters
from exclave.stacks.aws.references import Native, Node, Text
from exclave.stacks.aws.terraform.builder import ModuleBuilder
from exclave.stacks.aws.terraform.expressions import (
    write_address,
    write_variable,
)
from exclave.stacks.model import StackModel
from exclave.stacks.nested import write_prefix
from exclave.stacks.template_text import read_template
from exclave.stacks.terraform.text import quote

CAPABILITIES = ("CAPABILITY_IAM", "CAPABILITY_NAMED_IAM")


def add_nested(builder: ModuleBuilder, model: StackModel) -> NestedOutputs:
    """Add the vendor's templates; return their outputs by the names of the templates."""
    known = {parameter.name: parameter for parameter in list_parameters(model)}
    outputs: dict[str, Mapping[str, Text]] = {}
    for plan in plan_nested(model):
        for name, declared in plan.declared.items():
            builder.add_variable(write_variable(name), _write_variable(object_or_empty(declared)))
        source = "template_body" if plan.is_file else "template_url"
        text = plan.nested.content if plan.is_file else plan.nested.address
        builder.add(
            plan.resource,
            {
                "name": f"{model.stack_name}-{write_variable(plan.resource.name)}".replace(
                    "_", "-"
                ),
                source: text,
                "capabilities": CAPABILITIES,
                "parameters": _list_values(plan, known),
            },
        )
        outputs[plan.nested.name] = {name: _read_output(plan, name) for name in plan.flat.outputs}
    return outputs


def _list_values(plan: NestedPlan, known: Mapping[str, StackParameter]) -> Mapping[str, Node]:
    """Return the values of its parameters: the app's, those of the Stack, or the customer's."""
    if not plan.nested.content:
        return plan.given
    values: dict[str, Node] = {}
    for name in object_or_empty(read_template(plan.nested.content).get("Parameters")):
        variable = f"{write_prefix(plan.nested.name)}{name}"
        if variable in plan.declared:
            values[name] = Native(f"var.{write_variable(variable)}")
        elif name in plan.given:
            values[name] = plan.given[name]
        else:
            values[name] = known[name].reference
    return values


def _write_variable(declared: JsonObject) -> JsonObject:
    about = str(declared.get("Description", ""))
    default = {"default": str(declared["Default"])} if "Default" in declared else {}
    secret = {"sensitive": True} if declared.get("NoEcho") else {}
    return {"description": about, "type": "string", **default, **secret}


def _read_output(plan: NestedPlan, name: str) -> Native:
    return Native(f'lookup({write_address(plan.resource)}.outputs, "{quote(name)}", "")')
