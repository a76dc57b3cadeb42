"""What each operation role consists of, before any template language."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from exclave.base.json_values import JsonObject
from exclave.domain.stacks import RoleKind
from exclave.stacks.aws.document import has_registry
from exclave.stacks.aws.names import POLICY_NAME, write_policy_name, write_role_name
from exclave.stacks.aws.policies import (
    build_registry_policy,
    build_secrets_policy,
    write_document,
)
from exclave.stacks.aws.references import Fact, Node, Resource, Text
from exclave.stacks.aws.resources import name_boundary, name_overflow, name_role
from exclave.stacks.model import RoleModel, StackModel
from exclave.stacks.naming import fit_name

ROLE_SECONDS = 3600
GUARD_ABOUT = "What no role of this Stack may do; while it is stopped, nothing at all"
RUNNER_ABOUT = "The machine of the runner"
POLICY_ABOUT = "A policy of the app"
BOUNDARY_ABOUT = "What a role of the app may do at most"
INLINE_CHARACTERS = 10_000
"""What the policies within a role may have together; AWS takes 10,240."""
DESCRIPTION = 1000
OWN_POLICIES = ("exclave-secrets", "exclave-registry")
_UNKNOWN = re.compile(r"[^\t\n\r\x20-\x7e\xa1-\xff]")
_POLICY_NAME = re.compile(r"[^A-Za-z0-9_+=,.@-]+")


class InlinePolicy(NamedTuple):
    """A policy within a role."""

    name: str
    document: Mapping[str, Node]


class NamedPolicy(NamedTuple):
    """A policy beside a role."""

    resource: Resource
    name: str
    document: JsonObject


@dataclass(frozen=True, slots=True)
class RolePlan:
    """An operation role with its policies in the places that AWS has for them."""

    role: RoleModel
    resource: Resource
    name: str
    about: str
    managed: tuple[str, ...]
    """Names of managed policies of AWS, with their path, or ARNs."""
    inline: tuple[InlinePolicy, ...]
    overflow: tuple[NamedPolicy, ...]
    boundary: NamedPolicy | None

    @staticmethod
    def write_managed_arn(name: str) -> tuple[Text, ...]:
        """Return the ARN of a managed policy by its name; an ARN stays as it is."""
        if name.startswith("arn:"):
            return (name,)
        return ("arn:", Fact.PARTITION, f":iam::aws:policy/{name}")


def plan_roles(model: StackModel) -> tuple[RolePlan, ...]:
    """Return the operation roles of a Stack, in the order of the app."""
    return tuple(_plan_role(model, role) for role in model.roles)


def _plan_role(model: StackModel, role: RoleModel) -> RolePlan:
    documents = list_documents(role)
    fits = measure_documents(role) <= INLINE_CHARACTERS
    overflow = () if fits else tuple(_list_overflow(model, role))
    boundary = None
    if role.boundary is not None:
        name = write_policy_name(model, role.key, "boundary")
        boundary = NamedPolicy(name_boundary(role), name, role.boundary)
    return RolePlan(
        role=role,
        resource=name_role(role),
        name=write_role_name(role),
        about=clean_description(role.description or role.title),
        managed=tuple(dict.fromkeys(policy.managed for policy in role.policies if policy.managed)),
        inline=(*(documents if fits else ()), *_list_own_policies(model, role)),
        overflow=overflow,
        boundary=boundary,
    )


def list_documents(role: RoleModel) -> tuple[InlinePolicy, ...]:
    """List the policies that the app writes for a role, with names that differ."""
    documents = [policy for policy in role.policies if policy.document is not None]
    named: dict[str, JsonObject] = {}
    for index, policy in enumerate(documents):
        name = _POLICY_NAME.sub("-", policy.name).strip("-")
        if not name or name in named or name in OWN_POLICIES:
            name = f"{name or 'policy'}-{index}"
        named[fit_name(name, POLICY_NAME)] = policy.document or {}
    return tuple(InlinePolicy(name, document) for name, document in named.items())


def measure_documents(role: RoleModel) -> int:
    """Return how many characters the app's policies of a role have, as AWS counts them."""
    return sum(measure(policy.document or {}) for policy in role.policies)


def measure(document: JsonObject) -> int:
    """Return how many characters a policy has without white space."""
    return len(json.dumps(document, separators=(",", ":"), ensure_ascii=False))


def clean_description(text: str) -> str:
    """Return a description of a role with the characters that IAM takes."""
    return _UNKNOWN.sub("?", text)[:DESCRIPTION]


def _list_overflow(model: StackModel, role: RoleModel) -> Iterator[NamedPolicy]:
    for index, policy in enumerate(list_documents(role)):
        name = write_policy_name(model, role.key, str(index))
        document = json.loads(json.dumps(policy.document))
        yield NamedPolicy(name_overflow(role, index), name, document)


def _list_own_policies(model: StackModel, role: RoleModel) -> Iterator[InlinePolicy]:
    """List what a role needs for the parts that the Stack itself makes."""
    if role.kind in (RoleKind.PROVISION, RoleKind.MAINTENANCE):
        secrets = build_secrets_policy(model)
        if secrets:
            yield InlinePolicy("exclave-secrets", write_document(secrets))
    if role.kind is RoleKind.MAINTENANCE and has_registry(model):
        yield InlinePolicy("exclave-registry", write_document(build_registry_policy()))
