"""The Stacks that exist, by cloud."""

from collections.abc import Mapping
from typing import Protocol

from exclave.base.errors import Conflict
from exclave.domain.stacks import Cloud, StackFacts
from exclave.stacks.aws.stack import AwsStack
from exclave.stacks.azure.stack import AzureStack
from exclave.stacks.base import Guide, Parameter, RenderedStack, Stack, StackAddress
from exclave.stacks.findings import Finding
from exclave.stacks.gcp.stack import GcpStack
from exclave.stacks.local import LocalStack
from exclave.stacks.model import StackModel

STACKS: Mapping[Cloud, Stack] = {Cloud.LOCAL: LocalStack()}


class CloudStack(Protocol):
    """The Stack of a cloud with accounts, made from a model.

    All methods are pure: the same model gives the same result, byte by byte.
    """

    @property
    def cloud(self) -> Cloud:
        """The cloud that this Stack is for."""
        ...

    @property
    def forms(self) -> tuple[str, ...]:
        """The languages that it is written in, such as `cloudformation`; the usual one first."""
        ...

    def check(self, model: StackModel) -> tuple[Finding, ...]:
        """Return what the cloud would refuse or drop, such as a template that is too large."""
        ...

    def render(self, model: StackModel) -> RenderedStack:
        """Return the files of all forms; each file names its form. Only for a model without errors.

        The main file of the usual form comes first.
        """
        ...

    def write_guide(
        self, model: StackModel, address: StackAddress | None, before: StackModel | None = None
    ) -> Guide:
        """Return how the customer runs the files.

        `address` is where they are served; None if the customer has them in a folder. `before` is
        the model that the customer runs now: an update names only the parameters that are new.
        """
        ...

    def list_parameters(self, model: StackModel) -> tuple[Parameter, ...]:
        """Return the values that the customer may fill in, as the usual form names them."""
        ...

    def read_facts(self, reported: Mapping[str, str]) -> StackFacts:
        """Return the facts that a running Stack reported, typed for this cloud."""
        ...


CLOUD_STACKS: Mapping[Cloud, CloudStack] = {
    Cloud.AWS: AwsStack(),
    Cloud.AZURE: AzureStack(),
    Cloud.GCP: GcpStack(),
}
"""The Stacks of clouds with accounts: one entry for each folder `stacks/<cloud>`."""


def find_cloud_stack(cloud: str) -> CloudStack | None:
    """Return the Stack of a cloud with accounts; None if there is none."""
    return next((stack for name, stack in CLOUD_STACKS.items() if name == cloud), None)


def get_stack(cloud: str, *, owner: str) -> Stack:
    """Return the Stack of a cloud.

    Raise `Conflict` if there is none; the error names `owner`, the app or install that needs it,
    and the clouds that have one.
    """
    for name, stack in STACKS.items():
        if name == cloud:
            return stack
    clouds = ", ".join(f"`{name}`" for name in dict.fromkeys((*STACKS, *CLOUD_STACKS)))
    raise Conflict(
        f"{owner} is for `{cloud}`, and there is no Stack for that cloud yet",
        hint=f"Clouds with a Stack: {clouds}."
        " Set `runner_type` in the app's runner.toml to one of them and sync the app again.",
    )
