"""What roles of Azure and GCP may do, as far as names and permissions say."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from exclave.domain.stacks import RoleKind
from exclave.stacks.model import RoleModel
from exclave.stacks.reporting.rights import (
    Level,
    NamedGrant,
    Rights,
    ServiceRights,
    Topic,
    write_topics,
)

_GCP_ROLES: Final = {
    "roles/owner": "everything in the project, who may use it and billing too",
    "roles/editor": "read and change nearly everything in the project, but not who may use it",
    "roles/viewer": "read nearly everything in the project, but no contents of secrets",
    "roles/iam.serviceAccountUser": "run things as any service account of the project",
    "roles/iam.serviceAccountTokenCreator": "act as any service account of the project",
    "roles/iam.serviceAccountKeyAdmin": "make keys that outlive the Stack",
    "roles/resourcemanager.projectIamAdmin": "give any role in the project to anybody",
    "roles/iam.securityAdmin": "change who may do what",
    "roles/secretmanager.secretAccessor": "read contents of secrets",
    "roles/storage.objectViewer": "read objects in buckets",
}
_GCP_ALL: Final = frozenset({"roles/owner"})
_GCP_WIDENING: Final = frozenset(
    {
        "roles/owner",
        "roles/iam.serviceAccountUser",
        "roles/iam.serviceAccountTokenCreator",
        "roles/iam.serviceAccountKeyAdmin",
        "roles/resourcemanager.projectIamAdmin",
        "roles/iam.securityAdmin",
    }
)
_GCP_DATA: Final = (
    Topic("read objects in buckets", frozenset({"storage.objects.get"})),
    Topic("read secrets", frozenset({"secretmanager.versions.access"})),
    Topic("read tables of BigQuery", frozenset({"bigquery.tables.getData"})),
    Topic("log in to databases", frozenset({"cloudsql.instances.login"})),
    Topic("decrypt", frozenset({"cloudkms.cryptoKeyVersions.useToDecrypt"})),
    Topic("delete objects in buckets", frozenset({"storage.objects.delete"})),
)
_GCP_ACTIONS: Final = (
    Topic(
        "act as service accounts",
        frozenset({"iam.serviceAccounts.actAs", "iam.serviceAccounts.getAccessToken"}),
    ),
    Topic("make keys that outlive the Stack", frozenset({"iam.serviceAccountKeys.create"})),
    Topic("change who may do what", frozenset({"resourcemanager.projects.setIamPolicy"})),
)
_AZURE_ROLES: Final = {
    "Owner": "everything, and who may use it",
    "Contributor": "create, change and delete everything, but not who may use it",
    "Reader": "read settings of everything, but no contents",
    "User Access Administrator": "give any role to anybody",
    "Role Based Access Control Administrator": "give roles to anybody",
    "Key Vault Secrets User": "read secrets",
    "Key Vault Secrets Officer": "read, change and delete secrets",
    "Key Vault Administrator": "all of the contents of key vaults",
    "Storage Blob Data Reader": "read blobs",
    "Storage Blob Data Contributor": "read, change and delete blobs",
    "Storage Blob Data Owner": "all of blobs, and who may read them",
}
_AZURE_ALL: Final = frozenset({"Owner"})
_AZURE_WIDENING: Final = frozenset(
    {"Owner", "User Access Administrator", "Role Based Access Control Administrator"}
)
_AZURE_MACHINE: Final = frozenset(
    {
        "Owner",
        "Contributor",
        "Managed Identity Contributor",
        "Managed Identity Operator",
        "Virtual Machine Contributor",
    }
)
"""Those with which one gets at the runner's machine, or at the identities that it has."""
_AZURE_TAKEOVER: Final = re.compile(
    r"\*|microsoft\.(compute|managedidentity)/(\*|.*/(\*|write|action|runcommand.*))", re.IGNORECASE
)
_GCP_VERBS: Final = {
    "get": Level.READ,
    "list": Level.LIST,
    "access": Level.READ,
    "getData": Level.READ,
}


def read_gcp_rights(role: RoleModel) -> Rights:
    """Return what a role in a project may do; permissions say it by their verbs."""
    actions = frozenset(name for policy in role.policies for name in policy.gcp_permissions)
    roles = [policy.gcp_role for policy in role.policies if policy.gcp_role]
    return Rights(
        is_everything=bool(_GCP_ALL & set(roles)),
        actions=actions,
        services=_count((name.partition(".")[0], _level_gcp(name)) for name in actions),
        named=tuple(NamedGrant(name, _GCP_ROLES.get(name, _guess_gcp(name))) for name in roles),
        data=write_topics(_GCP_DATA, actions),
        widening=(
            *(_GCP_ROLES[name] for name in roles if name in _GCP_WIDENING),
            *write_topics(_GCP_ACTIONS, actions),
            *_find_policy_setters(actions),
        ),
    )


def read_azure_rights(role: RoleModel) -> Rights:
    """Return what a role in a resource group may do; actions say it by their last words."""
    actions = frozenset(name for policy in role.policies for name in policy.azure_actions)
    roles = [name for policy in role.policies for name in policy.azure_roles]
    assigns = sorted(name for name in actions if _level_azure(name) is Level.PERMISSIONS)
    return Rights(
        is_everything=bool(_AZURE_ALL & set(roles)) or "*" in actions,
        actions=actions,
        services=_count((_name_azure_service(name), _level_azure(name)) for name in actions),
        named=tuple(NamedGrant(name, _AZURE_ROLES.get(name, "")) for name in roles),
        widening=(
            *(_AZURE_ROLES[name] for name in roles if name in _AZURE_WIDENING),
            *([f"change who may do what ({', '.join(assigns)})"] if assigns else []),
            *_find_takeover(roles, actions),
        ),
        notes=_OF_VAULT if role.kind in (RoleKind.PROVISION, RoleKind.MAINTENANCE) else (),
    )


_OF_VAULT: Final = ("It may read the values of the app's secrets.",)


def _find_takeover(roles: Iterable[str], actions: Iterable[str]) -> tuple[str, ...]:
    """Return how a role gets at the runner's machine, and so at all roles of the Stack."""
    names = sorted(name for name in roles if name in _AZURE_MACHINE)
    names += sorted(name for name in actions if _AZURE_TAKEOVER.fullmatch(name))
    if not names:
        return ()
    return (f"act as every role that is on, by the runner's machine ({', '.join(names)})",)


def _find_policy_setters(actions: Iterable[str]) -> tuple[str, ...]:
    names = sorted(
        name
        for name in actions
        if name.endswith(".setIamPolicy") and name != "resourcemanager.projects.setIamPolicy"
    )
    return (f"change who may use certain resources ({', '.join(names)})",) if names else ()


def _guess_gcp(name: str) -> str:
    """Return what the name of a role promises, which Google does not guarantee."""
    service, _, kind = name.removeprefix("roles/").partition(".")
    low = kind.lower()
    if low.endswith("admin"):
        return f"by its name: all of {service}, or of a part of it"
    return f"by its name: read in {service}" if low.endswith("viewer") else ""


def _level_gcp(permission: str) -> Level:
    verb = permission.rpartition(".")[2]
    return Level.PERMISSIONS if verb == "setIamPolicy" else _GCP_VERBS.get(verb, Level.WRITE)


def _name_azure_service(action: str) -> str:
    return action.partition("/")[0]


def _level_azure(action: str) -> Level:
    low = action.lower()
    if low.endswith("/read"):
        return Level.READ
    return Level.PERMISSIONS if low.startswith("microsoft.authorization/") else Level.WRITE


def _count(pairs: Iterable[tuple[str, Level]]) -> tuple[ServiceRights, ...]:
    counts: dict[str, Counter[Level]] = {}
    for service, level in pairs:
        counts.setdefault(service, Counter())[level] += 1
    return tuple(
        ServiceRights(
            name, name, {level: counts[name][level] for level in Level if counts[name][level]}
        )
        for name in sorted(counts)
    )
