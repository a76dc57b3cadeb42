"""The names of what a Stack creates in a project, and the labels that it puts on it."""

import re
from collections.abc import Mapping
from typing import Final

from exclave.domain.runner_principals import digest_gcp_install, name_gcp_account
from exclave.stacks.model import InputModel, RoleModel, SecretModel, StackModel
from exclave.stacks.naming import fit_name, write_snake

SECRET_ID: Final = 255
ROLE_ID: Final = 64
LABEL: Final = 63
RUNNER: Final = "runner"
NODES: Final = "nodes"
"""The account of the nodes of a cluster that the app makes."""
_NOT_IN_LABELS: Final = re.compile(r"[^a-z0-9_-]")


def write_prefix(model: StackModel) -> str:
    """Return how the names of all parts begin, service accounts excepted."""
    return f"exclave-{digest_gcp_install(model.install_id)}"


def write_account_id(model: StackModel, key: str) -> str:
    """Return the id of a service account: its e-mail is the same after each update."""
    return name_gcp_account(model.install_id, key.replace("_", "-"))


def write_account_email(model: StackModel, role: RoleModel, project: str) -> str:
    """Return the e-mail of the account of a role in a project."""
    return f"{write_account_id(model, role.key)}@{project}.iam.gserviceaccount.com"


def write_role_id(model: StackModel, *parts: str) -> str:
    """Return the id of a custom role, which has no hyphens."""
    name = "_".join((write_prefix(model).replace("-", "_"), *parts))
    return fit_name(name, ROLE_ID).replace("-", "_")


def write_secret_id(model: StackModel, resource: str) -> str:
    """Return the id of a secret in Secret Manager."""
    return fit_name(f"{write_prefix(model)}-{resource.replace('_', '-')}", SECRET_ID)


def name_secret(secret: SecretModel) -> str:
    """Return the name of the resource of a secret."""
    return f"secret_{write_snake(secret.name)}"


def name_input(item: InputModel) -> str:
    """Return the name of the resource of a sensitive input."""
    return f"input_{write_snake(item.name)}"


def list_labels(model: StackModel) -> Mapping[str, str]:
    """Return the labels of everything that takes labels."""
    return {"exclave_install": _NOT_IN_LABELS.sub("_", model.install_id.lower())[:LABEL]}
