"""The Stack of an install in AWS: its files, its guide, what it reports."""

import json
from collections.abc import Mapping
from typing import ClassVar

from exclave.domain.stacks import AwsFacts, Cloud
from exclave.stacks.aws.cloudformation.template import build_template, write_template
from exclave.stacks.aws.commands import PARAMETERS, TEMPLATE
from exclave.stacks.aws.guide import write_guide
from exclave.stacks.aws.limits import list_findings
from exclave.stacks.aws.parameters import list_parameters
from exclave.stacks.aws.terraform.module import write_files
from exclave.stacks.base import Guide, Parameter, RenderedStack, StackAddress, StackFile
from exclave.stacks.findings import Finding
from exclave.stacks.model import StackModel

CLOUDFORMATION = "cloudformation"
TERRAFORM = "terraform"
_JSON = "application/json"


class AwsStack:
    """The Stack for an account in AWS, in two forms of the same resources."""

    cloud: ClassVar[Cloud] = Cloud.AWS
    forms: ClassVar[tuple[str, ...]] = (CLOUDFORMATION, TERRAFORM)

    def check(self, model: StackModel) -> tuple[Finding, ...]:
        """Return what AWS would refuse."""
        return list_findings(model)

    def render(self, model: StackModel) -> RenderedStack:
        """Return the template, a file for the customer's values, and the Terraform module."""
        template = write_template(build_template(model))
        return RenderedStack(
            (
                StackFile(TEMPLATE, _JSON, template, CLOUDFORMATION),
                StackFile(PARAMETERS, _JSON, _write_parameters(model), CLOUDFORMATION),
                *(
                    StackFile(f"terraform/{name}", _JSON, text, TERRAFORM)
                    for name, text in write_files(model).items()
                ),
            )
        )

    def write_guide(
        self, model: StackModel, address: StackAddress | None, before: StackModel | None = None
    ) -> Guide:
        """Return how the customer runs the files."""
        return write_guide(model, address, before)

    def list_parameters(self, model: StackModel) -> tuple[Parameter, ...]:
        """Return the parameters of the template."""
        return tuple(
            Parameter(
                name=parameter.name,
                description=parameter.about or parameter.label,
                default=None if parameter.secret else parameter.default,
                required=parameter.default is None,
                sensitive=parameter.secret,
            )
            for parameter in list_parameters(model)
        )

    def read_facts(self, reported: Mapping[str, str]) -> AwsFacts:
        """Return the facts about the account and the network."""
        return AwsFacts.from_report(reported)


def _write_parameters(model: StackModel) -> str:
    """Return the values that only the customer knows, as a file to fill in."""
    required = [item.name for item in list_parameters(model) if item.default is None]
    values = [{"ParameterKey": name, "ParameterValue": ""} for name in required]
    return json.dumps(values, indent=2) + "\n"
