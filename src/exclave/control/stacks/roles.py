"""The roles that an app asks for in the customer's account, as a cloud's Stack creates them."""

from collections.abc import Callable, Mapping, Sequence

from exclave.appconfig.model.kinds.permissions import (
    STANDARD_ROLES,
    BreakGlassRole,
    NamedPolicy,
    Role,
    RolePolicy,
)
from exclave.control.definitions import list_definitions
from exclave.control.job_specs.rendering import Renderings
from exclave.control.stacks.terms import build_renderer
from exclave.domain.identity import OrgId
from exclave.domain.stacks import RoleKind, StackPolicy, StackRole
from exclave.storage.engine.database import Tx

Render = Callable[[str], str]


def read_roles(
    tx: Tx, org: OrgId, install: str, config: str, texts: Renderings
) -> tuple[StackRole, ...]:
    """Return the roles of an install's config: those of `permissions`, then break-glass ones."""
    permissions = list_definitions(tx, org, config, Role)
    emergencies = list_definitions(tx, org, config, BreakGlassRole)
    if not permissions and not emergencies:
        return ()
    render = build_renderer(tx, org, install, texts)
    shared = _read_shared(tx, org, config, render)
    normal = _drop_overruled([*permissions.values()])
    return (
        *(_build_role(role, RoleKind(role.type), shared, render) for role in normal),
        *(_build_role(role, RoleKind.BREAK_GLASS, shared, render) for role in emergencies.values()),
    )


def _drop_overruled(roles: Sequence[Role]) -> Sequence[Role]:
    """Return one role of each standard type, the last one, and all custom roles."""
    last = {role.type: role for role in roles}
    return [role for role in roles if role.type not in STANDARD_ROLES or role is last[role.type]]


def _read_shared(tx: Tx, org: OrgId, config: str, render: Render) -> Mapping[str, StackPolicy]:
    """Return the policies that several roles share, by the name that roles use."""
    policies = list_definitions(tx, org, config, NamedPolicy).values()
    return {
        policy.name: StackPolicy(name=render(policy.name), document=render(policy.contents))
        for policy in policies
    }


def _build_role(
    role: Role, kind: RoleKind, shared: Mapping[str, StackPolicy], render: Render
) -> StackRole:
    enabled = role.enabled_in_stack
    return StackRole(
        kind=kind,
        name=render(role.name),
        title=render(role.display_name),
        description=render(role.description),
        policies=(
            *(_build_policy(policy, render) for policy in role.policies),
            *(shared[use.name] for use in role.named_policies),
        ),
        boundary=render(role.permissions_boundary),
        enabled=kind is not RoleKind.BREAK_GLASS if enabled is None else enabled,
    )


def _build_policy(policy: RolePolicy, render: Render) -> StackPolicy:
    return StackPolicy(
        name=render(policy.name),
        managed=render(policy.managed_policy_name),
        document=render(policy.contents),
        gcp_permissions=policy.gcp_permissions,
        gcp_role=policy.gcp_predefined_role,
        azure_actions=policy.azure_actions,
        azure_roles=policy.azure_built_in_roles,
    )
