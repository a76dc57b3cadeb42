"""The Stack of an install in Azure: its files, its guide, what it reports."""

import json
from collections.abc import Mapping
from typing import ClassVar

from exclave.domain.stacks import AzureFacts, Cloud
from exclave.stacks.azure.arm.template import build_template, write_template
from exclave.stacks.azure.bicep import write_bicep
from exclave.stacks.azure.commands import BICEP, PARAMETERS, TEMPLATE
from exclave.stacks.azure.guide import write_guide
from exclave.stacks.azure.limits import list_findings
from exclave.stacks.azure.parameters import list_parameters
from exclave.stacks.azure.terraform.module import write_files
from exclave.stacks.base import Guide, Parameter, RenderedStack, StackAddress, StackFile
from exclave.stacks.findings import Finding
from exclave.stacks.model import StackModel

ARM = "arm"
BICEP_FORM = "bicep"
TERRAFORM = "terraform"
_JSON = "application/json"
_SCHEMA = "https://schema.management.azure.com/schemas/2019-04-01/deploymentParameters.json#"


class AzureStack:
    """The Stack for a subscription of Azure, in three forms of the same resources."""

    cloud: ClassVar[Cloud] = Cloud.AZURE
    forms: ClassVar[tuple[str, ...]] = (ARM, BICEP_FORM, TERRAFORM)

    def check(self, model: StackModel) -> tuple[Finding, ...]:
        """Return what Azure would refuse."""
        return list_findings(model)

    def render(self, model: StackModel) -> RenderedStack:
        """Return the template, a file for the customer's values, Bicep, and the module."""
        template = write_template(build_template(model))
        return RenderedStack(
            (
                StackFile(TEMPLATE, _JSON, template, ARM),
                StackFile(PARAMETERS, _JSON, _write_parameters(model), ARM),
                StackFile(BICEP, "text/plain", write_bicep(model), BICEP_FORM),
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

    def read_facts(self, reported: Mapping[str, str]) -> AzureFacts:
        """Return the facts about the subscription and the network."""
        return AzureFacts.from_report(reported)


def _write_parameters(model: StackModel) -> str:
    """Return the values that only the customer knows, as a file to fill in."""
    required = [item.name for item in list_parameters(model) if item.default is None]
    values = {name: {"value": ""} for name in required}
    document = {"$schema": _SCHEMA, "contentVersion": "1.0.0.0", "parameters": values}
    return json.dumps(document, indent=2) + "\n"
