"""What a new version of a Stack changes, in words: for the customer before they apply it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Protocol, TypeVar

from exclave.base.json_values import JsonObject
from exclave.stacks.markdown import write_code, write_list, write_text
from exclave.stacks.model import InputModel, PolicyModel, RoleModel, SecretModel, StackModel
from exclave.stacks.reporting.aws_rights import list_action_patterns
from exclave.stacks.reporting.permissions import read_all_rights
from exclave.stacks.reporting.rights import Rights

_SHOWN: Final = 12


class Kind(StrEnum):
    """What happens to a part."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Change:
    """One part of the Stack that is not as before."""

    kind: Kind
    part: str
    """`role`, `secret`, `input`, `template`, `machine` or `network`."""
    name: str
    details: tuple[str, ...] = ()
    """What is different, in Markdown."""
    is_wider: bool = False
    """Whether a runner may do more than before."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=_Named)


def compare_models(before: StackModel, after: StackModel) -> tuple[Change, ...]:
    """Return what changes from one model to the next; a new program or key is no change."""
    return (
        *_compare_roles(before, after),
        *_compare_named("secret", before.secrets, after.secrets, _describe_secret),
        *_compare_named("input", before.inputs, after.inputs, _describe_input),
        *_compare_templates(before, after),
        *_compare_rest(before, after),
    )


def write_changes(changes: Sequence[Change]) -> str:
    """Return the changes as a list in Markdown; those that widen rights come first."""
    if not changes:
        return "Nothing that you apply changes.\n"
    ordered = sorted(changes, key=lambda change: not change.is_wider)
    return write_list(map(_write_change, ordered))


def _write_change(change: Change) -> str:
    mark = "**wider:** " if change.is_wider else ""
    head = f"{mark}{change.part} {write_code(change.name)} {change.kind}"
    return f"{head}: {'; '.join(change.details)}." if change.details else f"{head}."


def _compare_roles(before: StackModel, after: StackModel) -> Iterator[Change]:
    old = {
        role.name: (role, rights)
        for role, rights in zip(before.roles, read_all_rights(before), strict=True)
    }
    new = {
        role.name: (role, rights)
        for role, rights in zip(after.roles, read_all_rights(after), strict=True)
    }
    for name, (role, rights) in new.items():
        if name not in old:
            yield Change(
                Kind.ADDED, "role", name, tuple(_describe_role(role, rights)), is_wider=True
            )
            continue
        details = tuple(_describe_role_change(old[name], (role, rights)))
        if details or old[name][0] != role:
            details = details or ("other texts",)
            wider = _is_wider(old[name], (role, rights))
            yield Change(Kind.CHANGED, "role", name, details, is_wider=wider)
    for name in old:
        if name not in new:
            yield Change(Kind.REMOVED, "role", name)


_Both = tuple[RoleModel, Rights]


def _describe_role(role: RoleModel, rights: Rights) -> Iterator[str]:
    yield "on" if role.enabled else "off until you enable it"
    if rights.is_everything:
        yield "may do everything"
    elif rights.services:
        yield f"may act in {', '.join(write_code(item.name) for item in rights.services[:_SHOWN])}"
    yield from (f"has {write_code(grant.name)}" for grant in rights.named)


def _describe_role_change(before: _Both, after: _Both) -> Iterator[str]:
    (old, old_rights), (new, new_rights) = before, after
    if old.enabled != new.enabled:
        yield "on at first" if new.enabled else "off at first"
    if old.kind != new.kind:
        yield f"now a {new.kind} role"
    more = sorted(new_rights.actions - old_rights.actions)
    less = sorted(old_rights.actions - new_rights.actions)
    if more:
        yield f"may also do {_list_names(more)}"
    if less:
        yield f"may no longer do {_list_names(less)}"
    gained, lost = _list_grants(new) - _list_grants(old), _list_grants(old) - _list_grants(new)
    if gained:
        yield f"policies added: {_list_names(sorted(gained))}"
    if lost:
        yield f"policies removed: {_list_names(sorted(lost))}"
    if old.boundary != new.boundary:
        yield _describe_boundary(old.boundary, new.boundary)
    if not (more or less or gained or lost) and _list_documents(old) != _list_documents(new):
        yield "resources or conditions of its policies changed"


def _describe_boundary(old: JsonObject | None, new: JsonObject | None) -> str:
    if new is None:
        return "its boundary is gone"
    return "its boundary is new" if old is None else "its boundary changed"


def _list_grants(role: RoleModel) -> set[str]:
    """Return what a role is given, each by the name or pattern that the app writes."""
    grants: set[str] = set()
    for policy in role.policies:
        grants |= {policy.managed, policy.gcp_role, *policy.azure_roles}
        grants |= {*policy.gcp_permissions, *policy.azure_actions}
        if policy.document is not None:
            grants |= list_action_patterns(policy.document)
            grants |= {f"not {name}" for name in list_action_patterns(policy.document, "Deny")}
    return grants - {""}


def _list_documents(role: RoleModel) -> Sequence[PolicyModel]:
    """Return the policies without their names, which mean nothing."""
    return [replace(policy, name="") for policy in role.policies]


def _is_wider(before: _Both, after: _Both) -> bool:
    (old, old_rights), (new, new_rights) = before, after
    gained = {name for name in _list_grants(new) - _list_grants(old) if not name.startswith("not ")}
    dropped = {name for name in _list_grants(old) - _list_grants(new) if name.startswith("not ")}
    return bool(
        new_rights.actions - old_rights.actions
        or gained
        or dropped
        or (new.enabled and not old.enabled)
        or (old.boundary is not None and old.boundary != new.boundary)
        # What a statement is limited to cannot be compared, so it counts as more.
        or (old.policies != new.policies and _list_grants(old) == _list_grants(new))
    )


def _compare_named(
    part: str, before: Sequence[T], after: Sequence[T], describe: Callable[[T], Mapping[str, str]]
) -> Iterator[Change]:
    old = {item.name: item for item in before}
    new = {item.name: item for item in after}
    for name, item in new.items():
        words = describe(item)
        if name not in old:
            yield Change(Kind.ADDED, part, name, (words["need"],))
        elif old[name] != item:
            known = describe(old[name])
            details = tuple(text for key, text in words.items() if known[key] != text)
            yield Change(Kind.CHANGED, part, name, details or ("other texts",))
    yield from (Change(Kind.REMOVED, part, name) for name in old if name not in new)


def _describe_secret(secret: SecretModel) -> Mapping[str, str]:
    need = "you have to give it" if secret.required else "you may give it"
    return {
        "need": "the Stack makes it up" if secret.auto_generate else need,
        "default": "has a default" if secret.default else "has no default",
    }


def _describe_input(item: InputModel) -> Mapping[str, str]:
    return {
        "need": "you have to set it" if item.required else "you may set it",
        "type": f"is a {item.type}",
        "default": f"its default is {write_code(item.default)}"
        if item.default
        else "has no default",
        "sensitive": "the vendor sees its value" if not item.sensitive else "stays in your account",
    }


def _compare_templates(before: StackModel, after: StackModel) -> Iterator[Change]:
    old = {nested.name: nested for nested in before.nested}
    new = {nested.name: nested for nested in after.nested}
    for name, nested in new.items():
        if name not in old:
            yield Change(Kind.ADDED, "template", name, is_wider=True)
        elif old[name].content != nested.content or old[name].address != nested.address:
            yield Change(Kind.CHANGED, "template", name, ("other resources",), is_wider=True)
        elif old[name] != nested:
            yield Change(Kind.CHANGED, "template", name, ("other parameters",))
    yield from (Change(Kind.REMOVED, "template", name) for name in old if name not in new)


def _compare_rest(before: StackModel, after: StackModel) -> Iterator[Change]:
    if before.instance_type != after.instance_type:
        size = write_text(after.instance_type or "the usual size")
        yield Change(Kind.CHANGED, "machine", "runner", (f"its size is {size}",))
    if before.deployment_scope != after.deployment_scope:
        scope = after.deployment_scope.replace("_", " ")
        yield Change(Kind.CHANGED, "network", "place", (f"it is applied to a {scope}",))
    if before.network_template != after.network_template:
        yield Change(Kind.CHANGED, "network", "network", ("it has another template",))
    if before.runner_url != after.runner_url:
        where = f"it calls {write_code(after.runner_url)}"
        yield Change(Kind.CHANGED, "machine", "control plane", (where,))


def _list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(write_code, names[:_SHOWN])) + more
