"""The names of what a Stack creates in a resource group, and the tags that it puts on it."""

import re
from collections.abc import Mapping

from exclave.domain.runner_principals import name_azure_identity
from exclave.stacks.azure.references import Fact, Joined, join_text
from exclave.stacks.model import InputModel, RoleModel, SecretModel, StackModel
from exclave.stacks.naming import fit_name, write_camel

NAME = 64
"""The longest name that everything without a limit of its own takes."""
IDENTITY = 128
TAG = "exclave-install"
DOCUMENT = "exclave-stack"
SEAL = "exclave-seal"
CERTIFICATES = "exclave-ca-bundle"
_NOT_IN_SECRETS = re.compile(r"[^0-9A-Za-z-]")


def write_prefix(model: StackModel) -> str:
    """Return how the names of all parts begin."""
    return f"exclave-{model.install_id}"


def write_name(model: StackModel, *parts: str) -> str:
    """Return the name of a part of the Stack."""
    return fit_name("-".join((write_prefix(model), *parts)), NAME)


def write_runner_identity(model: StackModel) -> str:
    """Return the name of the runner's own identity, which the control plane expects."""
    return name_azure_identity(model.install_id)


def write_role_identity(model: StackModel, role: RoleModel) -> str:
    """Return the name of the identity that jobs of a role have."""
    key = role.key.replace("_", "-")
    own = "" if f"{write_prefix(model)}-{key}" != write_runner_identity(model) else "-role"
    return fit_name(f"{write_prefix(model)}-{key}{own}", IDENTITY)


def write_key(role: RoleModel) -> str:
    """Return the key of a role as a part of identifiers, such as `BreakGlassAdmin`."""
    return write_camel(role.key)


def write_secret_name(secret: SecretModel) -> str:
    """Return the name of a secret of the app in its vault."""
    return _NOT_IN_SECRETS.sub("-", secret.name)


def write_input_name(item: InputModel) -> str:
    """Return the name of a sensitive input in the vault."""
    return _NOT_IN_SECRETS.sub("-", f"input-{item.name}")


def write_secret_url(vault: Fact, name: str) -> Joined:
    """Return where a secret is read."""
    return join_text("https://", vault, Fact.VAULT_DOMAIN, "/secrets/", name)


def list_tags(model: StackModel) -> Mapping[str, str]:
    """Return the tags of everything that takes tags."""
    return {TAG: model.install_id}
