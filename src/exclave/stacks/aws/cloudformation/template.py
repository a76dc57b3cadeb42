"""The CloudFormation template of a Stack."""

import json

from exclave import __version__
from exclave.base.json_values import JsonObject
from exclave.stacks.aws.cloudformation.builder import TemplateBuilder
from exclave.stacks.aws.cloudformation.machine import add_machine, add_registry
from exclave.stacks.aws.cloudformation.nested import add_nested
from exclave.stacks.aws.cloudformation.network import add_network, add_security_group
from exclave.stacks.aws.cloudformation.parameters import (
    add_conditions,
    add_parameters,
    add_rules,
    write_interface,
)
from exclave.stacks.aws.cloudformation.roles import add_roles
from exclave.stacks.aws.cloudformation.secrets import add_document, add_secrets
from exclave.stacks.aws.document import has_registry
from exclave.stacks.aws.network import get_vpc
from exclave.stacks.aws.parameters import list_parameters
from exclave.stacks.aws.references import Attribute, Fact, ResourceRef
from exclave.stacks.aws.resources import (
    DOCUMENT,
    RUNNER_GROUP,
    RUNNER_LOG,
    RUNNER_ROLE,
    SEAL,
    get_arn,
    name_role,
)
from exclave.stacks.digest import digest_model
from exclave.stacks.model import StackModel

DESCRIPTION = 1024
BODY_BYTES = 51_200
"""How large a template may be that is sent along with a command."""


def build_template(model: StackModel) -> JsonObject:
    """Return the template of a model."""
    builder = TemplateBuilder()
    parameters = list_parameters(model)
    add_parameters(builder, parameters)
    add_rules(builder)
    add_conditions(builder, model)
    add_network(builder, model)
    add_security_group(builder, model)
    add_roles(builder, model)
    add_secrets(builder, model)
    if has_registry(model):
        add_registry(builder, model)
    outputs = add_nested(builder, model)
    add_document(builder, model, outputs)
    add_machine(builder, model)
    _add_outputs(builder, model)
    facts = {
        "Install": model.install_id,
        "Generator": __version__,
        "Digest": digest_model(model),
    }
    about = model.description or f"The Exclave runner of {model.app} for {model.install}"
    return {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": about.encode()[:DESCRIPTION].decode(errors="ignore"),
        "Metadata": {
            "Exclave": facts,
            "AWS::CloudFormation::Interface": write_interface(builder, parameters),
        },
        "Parameters": builder.parameters,
        "Rules": builder.rules,
        **({"Mappings": builder.mappings} if builder.mappings else {}),
        "Conditions": builder.conditions,
        "Resources": builder.resources,
        "Outputs": builder.outputs,
    }


def write_template(template: JsonObject) -> str:
    """Return the template as text: indented, unless only a dense one can go with a command."""
    text = json.dumps(template, indent=1) + "\n"
    if len(text.encode()) <= BODY_BYTES:
        return text
    return json.dumps(template, separators=(",", ":"), ensure_ascii=False) + "\n"


def _add_outputs(builder: TemplateBuilder, model: StackModel) -> None:
    builder.add_output("AccountId", "The account of this Stack", Fact.ACCOUNT)
    builder.add_output("VpcId", "The VPC of the runner", get_vpc())
    builder.add_output("RunnerRoleArn", "The role of the runner's machine", get_arn(RUNNER_ROLE))
    builder.add_output("RunnerGroupName", "The group of one machine", ResourceRef(RUNNER_GROUP))
    log = ResourceRef(RUNNER_LOG, Attribute.NAME)
    builder.add_output("LogGroup", "The log of the runner", log)
    builder.add_output("StackDocumentArn", "What the runner reads", get_arn(DOCUMENT))
    builder.add_output("SealSecretArn", "Outlives this Stack", get_arn(SEAL))
    for role in model.roles:
        resource = name_role(role)
        about = f"Role: {role.title or role.name}"[:DESCRIPTION]
        builder.add_output(f"{resource.name}Arn", about, get_arn(resource), resource.condition)
