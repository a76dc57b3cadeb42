"""The boot script of the runner's machine in Azure."""

from exclave.stacks.azure.names import DOCUMENT, write_secret_url
from exclave.stacks.azure.references import Fact, Joined, ParameterRef, Text
from exclave.stacks.azure.resources import get_client, name_runner_identity
from exclave.stacks.boot.composition import compose_boot_script
from exclave.stacks.model import StackModel


def build_boot_script(model: StackModel) -> Joined:
    """Return the boot script with references."""
    references: dict[str, Text] = {
        "identity": get_client(name_runner_identity(model)),
        "document": write_secret_url(Fact.RUNNER_VAULT, DOCUMENT),
    }
    if not model.account.is_known:
        references["code"] = ParameterRef("enrolmentCode")
    return Joined(tuple(compose_boot_script(model, references)))
