"""The names of what a Stack creates in an account, and the tags that it puts on it."""

from collections.abc import Mapping

from exclave.stacks.aws.references import Fact, Joined, ParameterRef, join_text
from exclave.stacks.model import RoleModel, StackModel
from exclave.stacks.naming import fit_name, write_camel

ROLE_NAME = 64
POLICY_NAME = 128
GUARDED = "exclave:guarded"
"""The tag of what no role of the Stack may touch."""
ROLE_PATH = ParameterRef("RolePath")


def write_prefix(model: StackModel) -> str:
    """Return how the names of all parts begin that are not the app's roles."""
    return f"exclave-{model.install_id}"


def write_role_name(role: RoleModel) -> str:
    """Return the name of an operation role in the account."""
    return fit_name(role.name, ROLE_NAME)


def write_runner_name(model: StackModel) -> str:
    """Return the name of the runner's own role."""
    return fit_name(f"{write_prefix(model)}-runner", ROLE_NAME)


def write_policy_name(model: StackModel, *parts: str) -> str:
    """Return the name of a managed policy of the Stack."""
    return fit_name("-".join((write_prefix(model), *parts)), POLICY_NAME)


def write_role_arn(name: str) -> Joined:
    """Return the ARN of a role of the Stack, which is known from its name."""
    return join_text("arn:", Fact.PARTITION, ":iam::", Fact.ACCOUNT, ":role", ROLE_PATH, name)


def write_key(role: RoleModel) -> str:
    """Return the key of a role as a part of identifiers, such as `BreakGlassAdmin`."""
    return write_camel(role.key)


def list_tags(model: StackModel) -> Mapping[str, str]:
    """Return the tags of everything that takes tags."""
    return {"exclave:install": model.install_id}


def list_guarded_tags(model: StackModel) -> Mapping[str, str]:
    """Return the tags of what no role of the Stack may touch."""
    return {GUARDED: model.install_id, **list_tags(model)}


def list_network_tags(model: StackModel) -> Mapping[str, str]:
    """Return the tags by which the Terraform of existing apps finds the network."""
    ids = {"install.nuon.co/id": model.install_id, "nuon_install_id": model.install_id}
    return {**ids, **list_tags(model)}
