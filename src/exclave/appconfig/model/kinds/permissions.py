"""`permissions/`, `permissions.toml`, `break_glass`: roles that the Stack creates."""

from exclave.appconfig.model.fields import (
    NEW,
    REQUIRED,
    WANTED,
    Table,
    flag,
    table,
    tables,
    text,
    texts,
)

STANDARD_ROLES = ("provision", "maintenance", "deprovision")


class RolePolicy(Table):
    """One thing that a role may do; the ways to say it exclude each other."""

    managed_policy_name: str = text(
        "AWS: the name of a managed policy.", '"AdministratorAccess"', templated=True
    )
    name: str = text("The name of the policy.", '"deploy"', templated=True)
    contents: str = text(
        "AWS: a policy document in JSON, or the file that holds it.",
        '"./deploy.json"',
        templated=True,
        reference=True,
    )
    gcp_permissions: tuple[str, ...] = texts(
        "GCP: single permissions.", '["storage.buckets.get"]', since=NEW
    )
    gcp_predefined_role: str = text("GCP: a role.", '"roles/viewer"', since=NEW)
    azure_actions: tuple[str, ...] = texts(
        "Azure: single actions.", '["Microsoft.Storage/*/read"]', since=NEW
    )
    azure_built_in_roles: tuple[str, ...] = texts("Azure: roles.", '["Reader"]', since=NEW)


class NamedPolicyUse(Table):
    """A policy of `permissions/policies/` that a role has."""

    name: str = text(
        "The name of the policy, as it is written there.",
        '"read_logs"',
        need=REQUIRED,
        since=NEW,
        templated=True,
    )


class NamedPolicy(Table):
    """A policy that several roles share."""

    name: str = text("Unique.", '"read_logs"', need=REQUIRED, since=NEW, templated=True)
    description: str = text(
        "Without effect: for whoever reads the file.", '"Read all logs"', since=NEW
    )
    contents: str = text(
        "A policy document in JSON, or the file that holds it.",
        '"./read_logs.json"',
        need=REQUIRED,
        since=NEW,
        templated=True,
        reference=True,
    )


class Role(Table):
    """A role in the customer's account."""

    type: str = text(
        "What it is for; needed in files of `permissions/`, without effect elsewhere.",
        choices=(*STANDARD_ROLES, "custom"),
    )
    name: str = text("Unique.", '"{{.nuon.install.id}}-provision"', need=REQUIRED, templated=True)
    description: str = text("What it is for.", '"Creates all"', need=WANTED, templated=True)
    display_name: str = text("The label.", '"Provision"', need=WANTED, templated=True)
    cloud_platform: str = text(
        "Must be the cloud of the runner.", choices=("aws", "azure", "gcp"), since=NEW
    )
    permissions_boundary: str = text(
        "AWS: a boundary in JSON, or the file that holds it.",
        '"./boundary.json"',
        templated=True,
        reference=True,
    )
    enabled_in_stack: bool | None = flag(
        "Whether it is switched on at first; break-glass roles are not.", default=None, since=NEW
    )
    policies: tuple[RolePolicy, ...] = tables(RolePolicy, "What the role may do.")
    named_policies: tuple[NamedPolicyUse, ...] = tables(
        NamedPolicyUse, "Policies of `permissions/policies/` that it has.", since=NEW
    )


class BreakGlassRole(Role):
    """A role for emergencies, which the customer switches on."""

    type: str = text("Without effect: the place says what the role is for.", '"custom"')


class PermissionsFile(Table):
    """All roles in one file."""

    provision_role: Role | None = table(Role, "Creates and changes the sandbox, syncs secrets.")
    maintenance_role: Role | None = table(Role, "Deploys components, runs actions.")
    deprovision_role: Role | None = table(Role, "Removes the sandbox.")
    custom_roles: tuple[Role, ...] = tables(Role, "Further roles.", since=NEW)
    named_policies: tuple[NamedPolicy, ...] = tables(
        NamedPolicy, "Policies that several roles share.", since=NEW
    )


class BreakGlassFile(Table):
    """Roles for emergencies, which the customer switches on."""

    role: tuple[BreakGlassRole, ...] = tables(BreakGlassRole, "The roles.")
