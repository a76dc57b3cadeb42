"""The boot script of the runner's machine in Google Cloud."""

from dataclasses import dataclass

from exclave.stacks.boot.composition import compose_boot_script
from exclave.stacks.gcp.secrets import DOCUMENT
from exclave.stacks.model import StackModel
from exclave.stacks.terraform.text import escape


@dataclass(frozen=True, slots=True)
class Expression:
    """What only the project knows, in Terraform."""

    text: str


def write_boot_script(model: StackModel) -> str:
    """Return the boot script as a template of Terraform."""
    references = {
        "region": Expression("var.region"),
        "document": Expression(f"google_secret_manager_secret.{DOCUMENT}.id"),
    }
    if not model.account.is_known:
        references["code"] = Expression("var.enrolment_code")
    return "".join(
        f"${{{part.text}}}" if isinstance(part, Expression) else escape(part)
        for part in compose_boot_script(model, references)
    )
