"""What identities may do: role definitions of the app's actions, and assignments."""

from collections.abc import Iterator
from dataclasses import dataclass

from exclave.domain.stacks import RoleKind
from exclave.stacks.azure.built_in_roles import (
    IMAGES_WRITER,
    METRICS_PUBLISHER,
    READER,
    SECRETS_READER,
    find_role_id,
)
from exclave.stacks.azure.document import has_registry
from exclave.stacks.azure.names import write_key, write_name
from exclave.stacks.azure.references import Resource
from exclave.stacks.azure.resources import (
    ENABLED,
    FULL,
    IMAGE_REGISTRY,
    PLAN_ONLY,
    RUNNER_VAULT,
    SECRET_VAULT,
    SECRET_WRITER,
    list_switch,
    name_assignment,
    name_definition,
    name_identity,
    name_log,
    name_log_rule,
    name_runner_identity,
)
from exclave.stacks.model import RoleModel, StackModel

DESCRIPTION = 500
WRITE_SECRETS = "Microsoft.KeyVault/vaults/secrets/setSecret/action"


@dataclass(frozen=True, slots=True)
class Definition:
    """A role of Azure that the Stack defines."""

    resource: Resource
    title: str
    about: str
    actions: tuple[str, ...] = ()
    data_actions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """A right of an identity, in the resource group or on one resource of it."""

    resource: Resource
    identity: Resource
    granted: Resource | str
    """A definition of the Stack, or the id of a built-in role."""
    scope: Resource | None = None
    after: Resource | None = None
    """What makes the scope, if that is no resource of the template itself."""


def list_definitions(model: StackModel) -> tuple[Definition, ...]:
    """Return the roles of Azure that a Stack defines."""
    title = write_name(model, "secret-writer")
    about = "Store values of secrets; neither read nor delete them"
    writer = Definition(SECRET_WRITER, title, about, data_actions=(WRITE_SECRETS,))
    return (writer, *_list_own_definitions(model))


def _list_own_definitions(model: StackModel) -> Iterator[Definition]:
    for role in model.roles:
        actions = list_actions(role)
        if actions:
            yield Definition(
                name_definition(role),
                write_name(model, role.key.replace("_", "-")),
                (role.description or role.title)[:DESCRIPTION],
                actions,
            )


def list_actions(role: RoleModel) -> tuple[str, ...]:
    """Return the actions of all policies of a role, each once."""
    return tuple(dict.fromkeys(name for policy in role.policies for name in policy.azure_actions))


def list_built_in(role: RoleModel) -> tuple[str, ...]:
    """Return the ids of the built-in roles of a role, each once; unknown ones are left out."""
    named = (find_role_id(name) for policy in role.policies for name in policy.azure_roles)
    return tuple(dict.fromkeys(role_id for role_id in named if role_id))


def list_assignments(model: StackModel) -> tuple[Assignment, ...]:
    """Return all rights that the Stack gives; none of them exists while it is stopped."""
    return (
        *_list_of_runner(model),
        *(given for role in model.roles for given in _list_of_role(model, role)),
    )


def _list_of_runner(model: StackModel) -> Iterator[Assignment]:
    """Return what the runner may do: read its vaults, store what is generated, write its log."""
    runner = name_runner_identity(model)
    for vault in (RUNNER_VAULT, SECRET_VAULT):
        reads = name_assignment("Runner", f"Reads{vault.name}", ENABLED)
        yield Assignment(reads, runner, find_role_id(SECRETS_READER), vault)
        writes = name_assignment("Runner", f"Writes{vault.name}", ENABLED)
        yield Assignment(writes, runner, SECRET_WRITER, vault)
    posts = name_assignment("Runner", "PostsLog", ENABLED)
    role_id, rule = find_role_id(METRICS_PUBLISHER), name_log_rule(model)
    yield Assignment(posts, runner, role_id, rule, name_log(model))


def _list_of_role(model: StackModel, role: RoleModel) -> Iterator[Assignment]:
    key, identity = write_key(role), name_identity(model, role)
    full = list_switch(role, FULL)
    for index, role_id in enumerate(list_built_in(role)):
        resource = name_assignment(key, f"BuiltIn{index}", *full)
        yield Assignment(resource, identity, role_id)
    if list_actions(role):
        resource = name_assignment(key, "Actions", *full)
        yield Assignment(resource, identity, name_definition(role))
    reader = name_assignment(key, "Reader", *list_switch(role, PLAN_ONLY))
    yield Assignment(reader, identity, find_role_id(READER))
    if role.kind in (RoleKind.PROVISION, RoleKind.MAINTENANCE):
        secrets = name_assignment(key, "Secrets", *list_switch(role, ENABLED))
        yield Assignment(secrets, identity, find_role_id(SECRETS_READER), SECRET_VAULT)
    if role.kind is RoleKind.MAINTENANCE and has_registry(model):
        images = name_assignment(key, "Images", *full)
        yield Assignment(images, identity, find_role_id(IMAGES_WRITER), IMAGE_REGISTRY)
