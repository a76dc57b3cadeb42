"""What Google Cloud would refuse of a Stack, as findings: names, roles, sizes."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from exclave.appconfig.diagnostics.codes import Code, Severity
from exclave.domain.stacks import RoleKind
from exclave.stacks.findings import Finding
from exclave.stacks.gcp.accounts import BASIC
from exclave.stacks.gcp.boot import write_boot_script
from exclave.stacks.gcp.document import build_document
from exclave.stacks.gcp.names import name_input, name_secret
from exclave.stacks.gcp.nested import is_pinned
from exclave.stacks.gcp.variables import (
    Variable,
    build_input_variable,
    build_secret_variable,
    list_variables,
)
from exclave.stacks.model import RoleModel, StackModel

PERMISSIONS: Final = 3000
"""What a custom role may have."""
CUSTOM_ROLES: Final = 300
"""What a project may have."""
METADATA_BYTES: Final = 256 << 10
SECRET_BYTES: Final = 64 << 10
_OWN_ROLES: Final = 3
_PERMISSION: Final = re.compile(r"[a-z][a-zA-Z0-9]*(\.[a-zA-Z0-9_-]+){2,}")
_ROLE: Final = re.compile(r"((projects|organizations)/[a-z0-9-]+/)?roles/[A-Za-z0-9_.]+")
_IDENTIFIER: Final = re.compile(r"[a-z_][a-z0-9_]*")


def list_findings(model: StackModel) -> tuple[Finding, ...]:
    """Return what would be refused, each with the part of the app that it comes from."""
    return (
        *_check_names(model),
        *(finding for role in model.roles for finding in _check_role(role)),
        *_check_sizes(model),
        *_check_nested(model),
    )


def _check_names(model: StackModel) -> Iterator[Finding]:
    """Find parts whose variables or resources have the name of another, or no name at all."""
    bare = replace(model, secrets=(), inputs=())
    taken = {item.name: "the Stack" for item in list_variables(bare)}
    for section, owner, name, variable, resource in _list_named(model):
        if not _IDENTIFIER.fullmatch(variable.name):
            message = f"{owner} begins with a digit, and no variable of Terraform may"
            yield _refuse(Code.BAD_NAME, message, "Give it another name.", section, name)
        versions = (f"{variable.name}_version",) if variable.is_secret else ()
        for identifier in (variable.name, *versions, resource):
            other = taken.setdefault(identifier, owner)
            if other != owner:
                message = f"{owner} has the same name in the Stack as {other}: `{identifier}`"
                hint = "Give one of them another name, in letters and digits."
                yield _refuse(Code.DUPLICATE_NAME, message, hint, section, name)


def _list_named(model: StackModel) -> Iterator[tuple[str, str, str, Variable, str]]:
    """List section, owner, name, variable and resource of each part of the app."""
    for secret in model.secrets:
        variable = build_secret_variable(secret)
        owner = f"the secret `{secret.name}`"
        yield "secrets", owner, secret.name, variable, name_secret(secret)
    for item in model.inputs:
        variable = build_input_variable(item)
        yield "inputs", f"the input `{item.name}`", item.name, variable, name_input(item)


def _check_role(role: RoleModel) -> Iterator[Finding]:
    for policy in role.policies:
        if len(set(policy.gcp_permissions)) > PERMISSIONS:
            message = f"a policy of the role `{role.name}` has too many permissions"
            hint = f"A custom role may have {PERMISSIONS}: split it."
            yield _refuse_role(Code.TOO_MANY, message, hint, role)
        for name in sorted(set(policy.gcp_permissions)):
            if not _PERMISSION.fullmatch(name):
                message = f"`{name}` of the role `{role.name}` is no permission"
                hint = "Write them in full, such as storage.buckets.get; there are no wildcards."
                yield _refuse_role(Code.POLICY_CONTENTS, message, hint, role)
        if policy.gcp_role and not _ROLE.fullmatch(policy.gcp_role):
            message = f"`{policy.gcp_role}` of the role `{role.name}` is no role of Google Cloud"
            yield _refuse_role(Code.POLICY_CONTENTS, message, "Write roles/<name>.", role)
        if policy.gcp_role in BASIC and role.kind is RoleKind.BREAK_GLASS:
            message = (
                f"Google gives `{policy.gcp_role}` no end: a break-glass role keeps it until the"
                " Stack is applied after its time"
            )
            hint = "Name predefined roles, such as roles/compute.admin: they end by themselves."
            where = ("permissions", role.name)
            yield Finding(Severity.WARNING, Code.DOUBTFUL_FORMAT, message, hint, *where)


def _check_sizes(model: StackModel) -> Iterator[Finding]:
    count = (
        _OWN_ROLES
        + Counter(bool(policy.gcp_permissions) for role in model.roles for policy in role.policies)[
            True
        ]
    )
    if count > CUSTOM_ROLES:
        message = f"the roles need {count} custom roles, and a project may have {CUSTOM_ROLES}"
        yield _refuse(Code.TOO_MANY, message, "Join policies of the same role.", "permissions")
    for what, size, limit in (
        ("the boot script of the machine", _measure(write_boot_script(model)), METADATA_BYTES),
        ("the document", _measure(json.dumps(build_document(model, {}))), SECRET_BYTES),
    ):
        if size > limit:
            message = f"{what} has {size} bytes"
            yield _refuse(Code.TOO_MANY, message, f"It may have {limit}.")
    for variable in list_variables(model):
        if _measure(variable.default or "") > SECRET_BYTES:
            message = f"the default of `{variable.name}` is too long"
            yield _refuse(Code.TOO_MANY, message, f"It may have {SECRET_BYTES} bytes.")


def _check_nested(model: StackModel) -> Iterator[Finding]:
    for nested in model.nested:
        if not is_pinned(nested):
            message = f"`{nested.address}` names no version, so that customers may get others"
            hint = "Add ?ref=<tag or commit>."
            yield Finding(Severity.WARNING, Code.DOUBTFUL_FORMAT, message, hint, "stack")


def _measure(text: str) -> int:
    return len(text.encode())


def _refuse_role(code: Code, message: str, hint: str, role: RoleModel) -> Finding:
    return _refuse(code, message, hint, "permissions", role.name)


def _refuse(code: Code, message: str, hint: str, section: str = "", name: str = "") -> Finding:
    return Finding(Severity.ERROR, code, message, hint, section, name)
