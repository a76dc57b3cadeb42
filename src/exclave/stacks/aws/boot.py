"""The boot script of the runner's machine in AWS."""

from exclave.stacks.aws.references import Fact, Joined, ParameterRef, Text
from exclave.stacks.aws.resources import DOCUMENT, get_arn
from exclave.stacks.boot.composition import compose_boot_script
from exclave.stacks.model import StackModel


def build_boot_script(model: StackModel) -> Joined:
    """Return the boot script with references."""
    references: dict[str, Text] = {
        "region": Fact.REGION,
        "domain": Fact.DOMAIN,
        "document": get_arn(DOCUMENT),
    }
    if not model.account.is_known:
        references["code"] = ParameterRef("EnrolmentCode")
    return Joined(tuple(compose_boot_script(model, references)))
