"""What the policies of a role of AWS come to: actions, less what boundary and guard deny."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from exclave.base.json_values import Json, JsonObject, list_or_empty, text_or_empty
from exclave.domain.stacks import RoleKind
from exclave.stacks.aws.document import has_registry
from exclave.stacks.aws.policies import (
    ACCOUNT_CHANGES,
    LASTING_CREDENTIALS,
    PUSH_IMAGES,
    READ_SECRET,
    list_full_actions,
)
from exclave.stacks.model import RoleModel, StackModel
from exclave.stacks.reporting.aws_actions import expand_action, load_actions
from exclave.stacks.reporting.aws_topics import DATA, MANAGED, WIDENING
from exclave.stacks.reporting.rights import Level, NamedGrant, Rights, ServiceRights, write_topics

_NEARLY_ALL: Final = 0.95
_FROM_OUTSIDE: Final = ("iam", "organizations", "account")


@dataclass(slots=True)
class _Sum:
    """What statements allow and deny."""

    allowed: set[str] = field(default_factory=set)
    denied: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    is_limited: bool = False
    """Whether some of it is allowed for certain resources or under conditions only."""
    has_exceptions: bool = False
    """Whether something is denied for certain resources or under conditions."""


def list_denied(model: StackModel) -> frozenset[str]:
    """Return the actions that the guard of the Stack denies to all roles, on all resources.

    An action that any role's policy names in full is denied to none of them.
    """
    wanted = list_full_actions(model)
    lasting = [action for action in LASTING_CREDENTIALS if action.lower() not in wanted]
    return _expand((*lasting, *ACCOUNT_CHANGES))


@dataclass(frozen=True, slots=True)
class OwnGrant:
    """What the Stack itself lets a role do, beside the app's policies."""

    actions: frozenset[str]
    note: str


def list_own_grants(model: StackModel, role: RoleModel) -> tuple[OwnGrant, ...]:
    """Return what the Stack itself lets a role do with the parts that it makes."""
    grants = []
    has_values = model.secrets or any(item.sensitive for item in model.inputs)
    if has_values and role.kind in {RoleKind.PROVISION, RoleKind.MAINTENANCE}:
        note = "The Stack lets it read the secrets that you fill in, and no others by that."
        grants.append(OwnGrant(_expand((*READ_SECRET, "kms:Decrypt")), note))
    if role.kind is RoleKind.MAINTENANCE and has_registry(model):
        note = "The Stack lets it copy images into the repository of the install."
        grants.append(OwnGrant(_expand((*PUSH_IMAGES, "ecr:GetAuthorizationToken")), note))
    return tuple(grants)


def read_rights(role: RoleModel, denied: frozenset[str], own: Sequence[OwnGrant] = ()) -> Rights:
    """Return what a role may do that nothing `denied` in the Stack's own policies prevents."""
    total = _Sum()
    named = []
    for policy in role.policies:
        if policy.document is not None:
            _add(total, policy.document)
        elif policy.managed:
            name = policy.managed.rpartition("/")[2]
            named.append(NamedGrant(policy.managed, MANAGED.get(name, "")))
            total.allowed |= _expand_managed(name)
    allowed = total.allowed.union(*(grant.actions for grant in own)) - total.denied
    notes = [*(grant.note for grant in own), *_write_notes(total)]
    if role.boundary is not None:
        limit = _Sum()
        _add(limit, role.boundary)
        if not limit.allowed - limit.denied >= allowed:
            notes.append("Its boundary takes away some of what its policies allow.")
        allowed &= limit.allowed - limit.denied
    allowed -= denied
    actions = frozenset(allowed)
    table = load_actions()
    return Rights(
        is_everything=len(actions) > _NEARLY_ALL * len(table.levels),
        actions=actions,
        services=_count(actions),
        named=tuple(named),
        data=write_topics(DATA, actions),
        widening=write_topics(WIDENING, actions),
        unknown=tuple(sorted(total.unknown)),
        notes=tuple(notes),
    )


def _write_notes(total: _Sum) -> list[str]:
    notes = []
    if total.is_limited:
        notes.append("Some actions are allowed for certain resources or under conditions only.")
    if total.has_exceptions:
        notes.append("Some actions are denied for certain resources or under conditions.")
    return notes


def _add(total: _Sum, document: JsonObject) -> None:
    for statement in _list_statements(document):
        patterns = _list_texts(statement.get("Action"))
        actions = _expand(patterns)
        if "NotAction" in statement:
            actions = load_actions().everything - _expand(_list_texts(statement["NotAction"]))
        is_open = "*" in _list_texts(statement.get("Resource")) and not statement.get("Condition")
        if text_or_empty(statement.get("Effect")) == "Allow":
            total.allowed |= actions
            total.unknown |= {pattern for pattern in patterns if not expand_action(pattern)}
            total.is_limited |= not is_open
        elif is_open:
            total.denied |= actions
        else:
            total.has_exceptions = True


def list_action_patterns(document: JsonObject, effect: str = "Allow") -> set[str]:
    """Return the actions that a document allows or denies, as it writes them."""
    patterns: set[str] = set()
    for statement in _list_statements(document):
        if text_or_empty(statement.get("Effect")) == effect:
            patterns |= set(_list_texts(statement.get("Action")))
            patterns |= {f"all but {name}" for name in _list_texts(statement.get("NotAction"))}
    return patterns


def _list_statements(document: JsonObject) -> Iterable[JsonObject]:
    statements = document.get("Statement")
    whole: Iterable[Json] = (
        [statements] if isinstance(statements, Mapping) else list_or_empty(statements)
    )
    return [statement for statement in whole if isinstance(statement, Mapping)]


def _list_texts(value: Json) -> list[str]:
    return [value] if isinstance(value, str) else [*map(str, list_or_empty(value))]


def _expand(patterns: Iterable[str]) -> frozenset[str]:
    return frozenset[str]().union(*map(expand_action, patterns))


def _expand_managed(name: str) -> frozenset[str]:
    """Return about what a managed policy allows; nothing if only AWS knows."""
    table = load_actions()
    match name:
        case "AdministratorAccess":
            return table.everything
        case "PowerUserAccess":
            return frozenset(
                action for action in table.levels if action.partition(":")[0] not in _FROM_OUTSIDE
            )
        case "ReadOnlyAccess":
            return frozenset(
                action
                for action, level in table.levels.items()
                if level in {Level.LIST, Level.READ}
            )
        case "IAMFullAccess":
            return expand_action("iam:*")
        case _:
            return frozenset()


def _count(actions: Iterable[str]) -> tuple[ServiceRights, ...]:
    table = load_actions()
    counts: dict[str, Counter[Level]] = {}
    for action in actions:
        counts.setdefault(action.partition(":")[0], Counter())[table.levels[action]] += 1
    return tuple(
        ServiceRights(
            prefix,
            table.titles[prefix],
            {level: counts[prefix][level] for level in Level if counts[prefix][level]},
        )
        for prefix in sorted(counts)
    )
