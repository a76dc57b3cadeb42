"""The roles of a model: rendered, with their policies as the cloud of the app has them."""

import json
from collections.abc import Iterator, Mapping, Sequence

from exclave.appconfig.checks.policy_documents import find_document_flaw
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import list_words
from exclave.appconfig.diagnostics.sources import Position
from exclave.appconfig.model.kinds.permissions import (
    STANDARD_ROLES,
    NamedPolicy,
    Role,
    RolePolicy,
)
from exclave.base.json_values import JsonObject, parse_object
from exclave.domain.stacks import Cloud, RoleKind
from exclave.stacks.building.parts import InstallFacts, StackParts
from exclave.stacks.building.texts import Texts, Where
from exclave.stacks.model import PolicyModel, RoleModel
from exclave.stacks.naming import write_snake


def build_roles(
    parts: StackParts, install: InstallFacts, texts: Texts
) -> Sequence[tuple[RoleModel, Where]]:
    """Return the roles of an app with their places: those of `permissions`, then emergencies."""
    shared = _read_shared(parts.shared, texts) if parts.cloud == Cloud.AWS else {}
    normal = [
        (role, RoleKind(role.type), Where("permissions", role.name))
        for role in _drop_overruled(parts.roles)
        if role.type
    ]
    emergencies = [
        (role, RoleKind.BREAK_GLASS, Where("break_glass", role.name)) for role in parts.emergencies
    ]
    return [
        (_build_role(role, kind, where, parts, install, shared, texts), where)
        for role, kind, where in (*normal, *emergencies)
    ]


def _drop_overruled(roles: Sequence[Role]) -> Sequence[Role]:
    """Return one role of each standard type, the last one, and all custom roles."""
    last = {role.type: role for role in roles}
    return [role for role in roles if role.type not in STANDARD_ROLES or role is last[role.type]]


def _read_shared(policies: Sequence[NamedPolicy], texts: Texts) -> Mapping[str, PolicyModel]:
    """Return the policies that several roles share, by the name that roles use."""
    shared = {}
    for policy in policies:
        where = Where("named_policies", policy.name)
        document = _read_document(policy.contents, where.child("contents"), texts)
        if document is not None:
            name = texts.show(policy.name, where.child("name"))
            shared[policy.name] = PolicyModel(name=name, document=document)
    return shared


def _build_role(
    role: Role,
    kind: RoleKind,
    where: Where,
    parts: StackParts,
    install: InstallFacts,
    shared: Mapping[str, PolicyModel],
    texts: Texts,
) -> RoleModel:
    _check_cloud(role, where, parts, texts)
    name = texts.need(role.name, where.child("name"))
    is_standard = kind in STANDARD_ROLES
    key = str(kind) if is_standard else write_snake(name.replace(install.install_id, ""))
    policies = [
        *_build_policies(role.policies, where, parts, texts),
        *(shared[use.name] for use in role.named_policies if use.name in shared),
    ]
    if role.named_policies and parts.cloud != Cloud.AWS:
        message = (
            f"`named_policies` are left out: they are for aws, and the runner for {parts.cloud}"
        )
        texts.warn(Code.CLOUD_MISMATCH, where.child("named_policies"), message)
    if not policies:
        message = f"the role `{role.name}` allows nothing"
        texts.warn(Code.EMPTY_POLICY, where, message, "Jobs that run with it can do nothing.")
    boundary = where.child("permissions_boundary")
    enabled = role.enabled_in_stack
    return RoleModel(
        key=key,
        kind=kind,
        name=name,
        title=texts.show(role.display_name, where.child("display_name")) or key,
        description=texts.show(role.description, where.child("description")),
        enabled=kind is not RoleKind.BREAK_GLASS if enabled is None else enabled,
        policies=tuple(_name_apart(policies)),
        boundary=_read_document(role.permissions_boundary, boundary, texts)
        if role.permissions_boundary
        else None,
    )


def _check_cloud(role: Role, where: Where, parts: StackParts, texts: Texts) -> None:
    if role.cloud_platform and role.cloud_platform != parts.cloud:
        message = f"the role is for {role.cloud_platform}, and the runner for {parts.cloud}"
        hint = "Remove the key: the cloud of the runner is the default."
        texts.error(Code.CLOUD_MISMATCH, where.child("cloud_platform"), message, hint)
    if role.permissions_boundary and parts.cloud != "aws":
        message = f"`permissions_boundary` is for aws, and the runner for {parts.cloud}"
        texts.error(Code.CLOUD_MISMATCH, where.child("permissions_boundary"), message)


def _build_policies(
    policies: Sequence[RolePolicy], where: Where, parts: StackParts, texts: Texts
) -> Iterator[PolicyModel]:
    for index, policy in enumerate(policies):
        place = where.child("policies", index)
        name = texts.show(policy.name, place.child("name"))
        ways = {
            cloud: models
            for cloud, models in _split_policy(policy, name, place, parts, texts).items()
            if models
        }
        yield from ways.get(parts.cloud, ())
        foreign = [cloud for cloud in ways if cloud != parts.cloud]
        if foreign:
            message = f"the policy is left out: it is for {list_words(foreign)}"
            texts.warn(Code.CLOUD_MISMATCH, place, message)
        elif not ways and not policy.contents:
            message = "the policy is left out: it allows nothing"
            texts.warn(Code.EMPTY_POLICY, place, message, "Remove the empty [[policies]] table.")


def _split_policy(
    policy: RolePolicy, name: str, where: Where, parts: StackParts, texts: Texts
) -> Mapping[str, Sequence[PolicyModel]]:
    """Return a policy by clouds, with one model for each way in which it says what is allowed."""
    managed = texts.need(policy.managed_policy_name, where.child("managed_policy_name"))
    aws = [PolicyModel(name=name, managed=managed)] if managed else []
    if policy.contents and parts.cloud == Cloud.AWS:
        document = _read_document(policy.contents, where.child("contents"), texts)
        aws += [PolicyModel(name=name, document=document)] if document is not None else []
    elif policy.contents:  # left out, so whether it could work does not matter
        aws.append(PolicyModel(name=name, document={}))
    gcp, azure = [], []
    if policy.gcp_permissions:
        gcp.append(PolicyModel(name=name, gcp_permissions=policy.gcp_permissions))
    if policy.gcp_predefined_role:
        gcp.append(PolicyModel(name=name, gcp_role=policy.gcp_predefined_role))
    if policy.azure_actions:
        azure.append(PolicyModel(name=name, azure_actions=policy.azure_actions))
    if policy.azure_built_in_roles:
        azure.append(PolicyModel(name=name, azure_roles=policy.azure_built_in_roles))
    return {"aws": aws, "gcp": gcp, "azure": azure}


def _name_apart(policies: Sequence[PolicyModel]) -> Iterator[PolicyModel]:
    """Yield the policies of a role with different names, since a role has each name once."""
    taken: set[str] = set()
    for number, policy in enumerate(policies, 1):
        name = policy.name or policy.managed.rpartition("/")[2] or f"policy-{number}"
        name = name if name not in taken else f"{name}-{number}"
        while name in taken:
            name += "-"
        taken.add(name)
        yield PolicyModel(
            name=name,
            managed=policy.managed,
            document=policy.document,
            gcp_permissions=policy.gcp_permissions,
            gcp_role=policy.gcp_role,
            azure_actions=policy.azure_actions,
            azure_roles=policy.azure_roles,
        )


def _read_document(text: str, where: Where, texts: Texts) -> JsonObject | None:
    """Return a policy document of AWS; None if it is none, which is an error, or allows nothing."""
    rendered = texts.need(text, where)
    if not rendered:
        return None
    try:
        document = parse_object(rendered, "the document")
    except ValueError as error:
        message = f"the document is not JSON: {error.__cause__ or error}"
        texts.error(Code.POLICY_CONTENTS, where, message, position=_find_position(error.__cause__))
        return None
    flaw = find_document_flaw(document)
    if flaw:
        hint = "Write a policy document of IAM, with `Version` and `Statement`."
        texts.error(Code.POLICY_CONTENTS, where, f"the document cannot work: {flaw}", hint)
        return None
    if not document["Statement"]:
        message = "the document is left out: it has no statement"
        texts.warn(Code.EMPTY_POLICY, where, message)
        return None
    return document


def _find_position(error: BaseException | None) -> Position | None:
    return Position(error.lineno, error.colno) if isinstance(error, json.JSONDecodeError) else None
