"""What AWS would refuse of a Stack, as findings: sizes and numbers of the finished forms."""

import json
from collections.abc import Iterator, Sequence

from exclave.appconfig.diagnostics.codes import Code, Severity
from exclave.base.json_values import object_or_empty
from exclave.stacks.aws.boot import build_boot_script
from exclave.stacks.aws.cloudformation.intrinsics import write_substitution
from exclave.stacks.aws.cloudformation.template import build_template, write_template
from exclave.stacks.aws.parameters import (
    build_input_parameter,
    build_secret_parameter,
    list_parameters,
)
from exclave.stacks.aws.policies import (
    build_guard,
    build_runner_policy,
    build_secrets_policy,
    write_document,
)
from exclave.stacks.aws.references import (
    Fact,
    Joined,
    Native,
    Node,
    ParameterRef,
    ResourceRef,
    When,
)
from exclave.stacks.aws.resources import (
    FIXED,
    name_boundary,
    name_input,
    name_overflow,
    name_role,
    name_secret,
)
from exclave.stacks.aws.roles import INLINE_CHARACTERS, list_documents, measure, measure_documents
from exclave.stacks.findings import Finding
from exclave.stacks.model import RoleModel, StackModel

PARAMETERS = 200
RESOURCES = 500
TEMPLATE_BYTES = 1_000_000
USER_DATA_BYTES = 16_384
MANAGED_CHARACTERS = 6_144
MANAGED_POLICIES = 10
PARAMETER_BYTES = 4_096
SECRET_BYTES = 65_536
_ARN = 100
"""How long an ARN is that is known only in the account: partition, number, path and name."""
_FUNCTIONS = frozenset({"Ref", "Condition"})


def list_findings(model: StackModel) -> tuple[Finding, ...]:
    """Return what AWS would refuse, each with the part of the app that it comes from."""
    named = (*_check_names(model), *_check_roles(model), *_check_values(model))
    return named or (*_check_own_policies(model), *_check_template(model))


def _check_names(model: StackModel) -> Iterator[Finding]:
    """Find parts that would have the name of another part in the template."""
    taken = {resource.name: "the Stack" for resource in FIXED}
    taken |= {"SubnetOfExistingVpc": "the Stack"}
    for section, owner, name, names in _list_names(model):
        for identifier in names:
            other = taken.setdefault(identifier, owner)
            if other != owner:
                message = f"{owner} has the same name in the Stack as {other}: `{identifier}`"
                hint = "Give one of them another name, in letters and digits."
                yield _refuse(Code.DUPLICATE_NAME, message, hint, section, name)


def _list_names(model: StackModel) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """List section, owner, name, and the logical names of each part of the app."""
    for role in model.roles:
        overflow = (name_overflow(role, index).name for index in range(len(role.policies)))
        names = (name_role(role).name, name_boundary(role).name, *overflow)
        yield "permissions", f"the role `{role.name}`", role.name, names
    for secret in model.secrets:
        names = (name_secret(secret).name, build_secret_parameter(secret).name)
        yield "secrets", f"the secret `{secret.name}`", secret.name, names
    for item in model.inputs:
        names = (name_input(item).name, build_input_parameter(item).name)
        yield "inputs", f"the input `{item.name}`", item.name, names


def _check_roles(model: StackModel) -> Iterator[Finding]:
    for role in model.roles:
        for document in (*(policy.document for policy in role.policies), role.boundary):
            if document is not None and _has_functions(document):
                message = f"a policy of the role `{role.name}` has a function of CloudFormation"
                hint = "A policy is plain JSON; use templates such as {{.nuon.install.id}}."
                yield _refuse_role(Code.POLICY_CONTENTS, message, hint, role)
        yield from _check_policies(role)


def _check_policies(role: RoleModel) -> Iterator[Finding]:
    """Find policies that do not fit into a role, nor beside it."""
    documents = list_documents(role)
    is_large = measure_documents(role) > INLINE_CHARACTERS
    for name, document in documents if is_large else ():
        size = measure(json.loads(json.dumps(document)))
        if size > MANAGED_CHARACTERS:
            message = f"the policy `{name}` of the role `{role.name}` has {size} characters"
            hint = f"A managed policy may have {MANAGED_CHARACTERS}: split it."
            yield _refuse_role(Code.TOO_MANY, message, hint, role)
    size = measure(role.boundary or {})
    if size > MANAGED_CHARACTERS:
        message = f"the boundary of the role `{role.name}` has {size} characters"
        hint = f"It may have {MANAGED_CHARACTERS}."
        yield _refuse_role(Code.TOO_MANY, message, hint, role)
    count = 1 + len({policy.managed for policy in role.policies if policy.managed})
    count += len(documents) if is_large else 0
    if count > MANAGED_POLICIES:
        message = f"the role `{role.name}` needs {count} managed policies, the guard among them"
        hint = f"A role may have {MANAGED_POLICIES}: join some of them."
        yield _refuse_role(Code.TOO_MANY, message, hint, role)


def _check_values(model: StackModel) -> Iterator[Finding]:
    for parameter in list_parameters(model):
        if len((parameter.default or "").encode()) > PARAMETER_BYTES:
            message = f"the default of the parameter `{parameter.name}` is too long"
            yield _refuse(Code.TOO_MANY, message, f"It may have {PARAMETER_BYTES} bytes.")


def _check_own_policies(model: StackModel) -> Iterator[Finding]:
    """Find what grows with the number of roles and secrets."""
    for what, limit, statements in (
        ("the guard", MANAGED_CHARACTERS, build_guard(model)),
        ("the runner's own policy", INLINE_CHARACTERS, build_runner_policy(model)),
        ("the policy for secrets", INLINE_CHARACTERS, build_secrets_policy(model)),
    ):
        size = _estimate(write_document(statements))
        if size > limit:
            message = f"{what} has about {size} characters: too many roles, secrets or inputs"
            yield _refuse(Code.TOO_MANY, message, f"It may have {limit}.")
    script = write_substitution(build_boot_script(model).parts)
    size = len(str(object_or_empty(script).get("Fn::Sub")).encode()) + _ARN
    if size > USER_DATA_BYTES:
        message = f"the boot script of the machine has {size} bytes: too many keys"
        yield _refuse(Code.TOO_MANY, message, f"It may have {USER_DATA_BYTES}.")


def _check_template(model: StackModel) -> Iterator[Finding]:
    template = build_template(model)
    for section, limit in (("Parameters", PARAMETERS), ("Resources", RESOURCES)):
        count = len(object_or_empty(template.get(section)))
        if count > limit:
            message = f"the template has {count} {section.lower()}"
            yield _refuse(Code.TOO_MANY, message, f"CloudFormation takes {limit}.", "stack")
    size = len(write_template(template).encode())
    if size > TEMPLATE_BYTES:
        message = f"the template has {size} bytes"
        yield _refuse(Code.TOO_MANY, message, f"CloudFormation takes {TEMPLATE_BYTES}.", "stack")


def _has_functions(value: object) -> bool:
    """Return whether CloudFormation would compute something in what is meant as data."""
    match value:
        case dict():
            names = set(value)
            is_call = len(names) == 1 and (
                bool(names & _FUNCTIONS) or next(iter(names)).startswith("Fn::")
            )
            return is_call or any(_has_functions(item) for item in value.values())
        case list() | tuple():
            return any(_has_functions(item) for item in value)
        case _:
            return False


def _estimate(node: Node) -> int:
    """Return about how many characters a policy has once its references are known."""
    match node:
        case ResourceRef() | Native():
            return _ARN
        case Fact() | ParameterRef():
            return 12
        case Joined(parts):
            return 3 + sum(len(p) if isinstance(p, str) else _estimate(p) for p in parts)
        case When(_, then, _):
            return _estimate(then)
        case str():
            return len(node) + 3
        case dict():
            return 2 + sum(len(name) + 4 + _estimate(value) for name, value in node.items())
        case Sequence():
            return 2 + sum(_estimate(item) for item in node)
        case _:
            return 6


def _refuse_role(code: Code, message: str, hint: str, role: RoleModel) -> Finding:
    return _refuse(code, message, hint, "permissions", role.name)


def _refuse(code: Code, message: str, hint: str, section: str = "", name: str = "") -> Finding:
    return Finding(Severity.ERROR, code, message, hint, section, name)
