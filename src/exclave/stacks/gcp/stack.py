"""The Stack of an install in Google Cloud: its files, its guide, what it reports."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

from exclave.domain.stacks import Cloud, GcpFacts
from exclave.stacks.base import Guide, Parameter, RenderedStack, StackAddress, StackFile
from exclave.stacks.findings import Finding
from exclave.stacks.gcp.commands import EXAMPLE
from exclave.stacks.gcp.guide import write_guide
from exclave.stacks.gcp.limits import list_findings
from exclave.stacks.gcp.module import Form, write_files
from exclave.stacks.gcp.variables import list_variables
from exclave.stacks.model import StackModel
from exclave.stacks.parameter_kinds import ParameterKind

_EMPTY: Final = {
    ParameterKind.TEXT: '""',
    ParameterKind.FLAG: "false",
    ParameterKind.NUMBER: "0",
    ParameterKind.LIST: "[]",
}


class GcpStack:
    """The Stack for a project in Google Cloud: one module, for two programs that apply it."""

    cloud: ClassVar[Cloud] = Cloud.GCP
    forms: ClassVar[tuple[str, ...]] = tuple(str(form) for form in Form)

    def check(self, model: StackModel) -> tuple[Finding, ...]:
        """Return what Google Cloud would refuse."""
        return list_findings(model)

    def render(self, model: StackModel) -> RenderedStack:
        """Return the module in both forms, each with a file for the customer's values."""
        return RenderedStack(tuple(_list_files(model)))

    def write_guide(
        self, model: StackModel, address: StackAddress | None, before: StackModel | None = None
    ) -> Guide:
        """Return how the customer runs the files."""
        return write_guide(model, address, before)

    def list_parameters(self, model: StackModel) -> tuple[Parameter, ...]:
        """Return the variables of the module."""
        return tuple(
            Parameter(
                name=variable.name,
                description=variable.about,
                default=None if variable.is_secret else variable.default,
                required=variable.default is None or variable.is_required,
                sensitive=variable.is_secret,
            )
            for variable in list_variables(model)
        )

    def read_facts(self, reported: Mapping[str, str]) -> GcpFacts:
        """Return the facts about the project and the network."""
        return GcpFacts.from_report(reported)


def _list_files(model: StackModel) -> Iterator[StackFile]:
    for form in Form:
        for name, text in write_files(model, form).items():
            yield StackFile(f"{form}/{name}", "application/json", text, form)
        yield StackFile(f"{form}/{EXAMPLE}", "text/plain", _write_values(model), form)


def _write_values(model: StackModel) -> str:
    """Return the values that only the customer knows, as a file to fill in."""
    empty = (item for item in list_variables(model) if item.default is None)
    return "".join(f"{item.name} = {_EMPTY[item.kind]}\n" for item in empty)
