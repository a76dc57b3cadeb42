"""What Azure would refuse of a Stack, as findings: names, sizes and numbers of the template."""

import json
import re
from collections.abc import Iterator, Sequence

from exclave.appconfig.diagnostics.codes import Code, Severity
from exclave.base.json_values import Json, list_or_empty, object_or_empty
from exclave.stacks.azure.arm.expressions import write_text_value
from exclave.stacks.azure.arm.template import build_group_template, write_template
from exclave.stacks.azure.boot import build_boot_script
from exclave.stacks.azure.built_in_roles import find_role_id
from exclave.stacks.azure.document import build_stack_document
from exclave.stacks.azure.names import write_input_name, write_role_identity, write_secret_name
from exclave.stacks.azure.nested import NestedError, plan_nested
from exclave.stacks.azure.references import is_text
from exclave.stacks.azure.resources import FIXED, name_identity, name_input, name_secret
from exclave.stacks.findings import Finding
from exclave.stacks.model import StackModel

PARAMETERS = 256
VARIABLES = 256
RESOURCES = 800
TEMPLATE_BYTES = 4_000_000
EXPRESSION = 24_576
DOCUMENT = 25_000
CUSTOM_DATA = 65_536
SECRET_NAME = 127
_INPUT_ROOM = 200
"""How many characters an input of the customer is reckoned with."""
_ACTION = re.compile(r"\*|[A-Za-z0-9.*-]+(/[A-Za-z0-9.*_-]+)+")


def list_findings(model: StackModel) -> tuple[Finding, ...]:
    """Return what Azure would refuse, each with the part of the app that it comes from."""
    parts = (*_check_names(model), *_check_roles(model), *_check_nested(model))
    return parts or (*_check_sizes(model),)


def _check_names(model: StackModel) -> Iterator[Finding]:
    """Find parts that would have the name of another part."""
    taken = {name.lower(): "the Stack" for name in FIXED}
    for section, owner, name, identifiers in _list_names(model):
        for identifier in identifiers:
            other = taken.setdefault(identifier.lower(), owner)
            if other != owner:
                message = f"{owner} has the same name in the Stack as {other}: `{identifier}`"
                hint = "Give one of them another name, in letters and digits."
                yield _refuse(Code.DUPLICATE_NAME, message, hint, section, name)
    for section, name, written in _list_secret_names(model):
        if len(written) > SECRET_NAME:
            message = f"the name `{name}` is too long for a secret in a vault"
            hint = f"It may have {SECRET_NAME} characters, `input-` of a sensitive input included."
            yield _refuse(Code.BAD_NAME, message, hint, section, name)


def _list_names(model: StackModel) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """List section, owner, name, and what each part is called in the Stack and in Azure."""
    for role in model.roles:
        names = (name_identity(model, role).name, f"identity {write_role_identity(model, role)}")
        yield "permissions", f"the role `{role.name}`", role.name, names
    for secret in model.secrets:
        names = (name_secret(secret).name, f"secret {write_secret_name(secret)}")
        yield "secrets", f"the secret `{secret.name}`", secret.name, names
    for item in model.inputs:
        if item.sensitive:
            names = (name_input(item).name, f"secret {write_input_name(item)}")
            yield "inputs", f"the input `{item.name}`", item.name, names


def _list_secret_names(model: StackModel) -> Iterator[tuple[str, str, str]]:
    for secret in model.secrets:
        yield "secrets", secret.name, write_secret_name(secret)
    for item in model.inputs:
        if item.sensitive:
            yield "inputs", item.name, write_input_name(item)


def _check_roles(model: StackModel) -> Iterator[Finding]:
    for role in model.roles:
        for policy in role.policies:
            for name in policy.azure_roles:
                if not find_role_id(name):
                    message = f"the role `{role.name}` has the built-in role `{name}`, whose id is"
                    message += " not known"
                    hint = "Write the id of the role instead, which its page in the portal shows."
                    yield _refuse(Code.POLICY_CONTENTS, message, hint, "permissions", role.name)
            for action in policy.azure_actions:
                if not _ACTION.fullmatch(action):
                    message = f"the role `{role.name}` has the action `{action}`, which is none"
                    hint = "Write it like Microsoft.Storage/storageAccounts/read."
                    yield _refuse(Code.POLICY_CONTENTS, message, hint, "permissions", role.name)


def _check_nested(model: StackModel) -> Iterator[Finding]:
    try:
        plan_nested(model)
    except NestedError as fault:
        hint = "Values of parameters are in [custom_nested_stacks.parameters]."
        yield _refuse(Code.UNKNOWN_TEMPLATE, str(fault), hint, "stack")


def _check_sizes(model: StackModel) -> Iterator[Finding]:
    template = build_group_template(model)
    for section, limit in (("parameters", PARAMETERS), ("variables", VARIABLES)):
        count = len(object_or_empty(template.get(section)))
        if count > limit:
            message = f"the template has {count} {section}: too many roles, secrets or inputs"
            yield _refuse(Code.TOO_MANY, message, f"Azure takes {limit}.", "stack")
    count = len(list_or_empty(template.get("resources")))
    if count > RESOURCES:
        message = f"the template has {count} resources: too many roles, secrets or inputs"
        yield _refuse(Code.TOO_MANY, message, f"Azure takes {RESOURCES}.", "stack")
    yield from _check_lengths(model, write_template(template))
    longest = max(map(len, _list_expressions(template)), default=0)
    if longest > EXPRESSION:
        message = f"an expression of the template has {longest} characters: too many roles"
        yield _refuse(Code.TOO_MANY, message, f"Azure takes {EXPRESSION}.", "stack")


def _check_lengths(model: StackModel, template: str) -> Iterator[Finding]:
    document = json.dumps(write_text_value(build_stack_document(model, {})))
    room = _INPUT_ROOM * sum(not item.sensitive for item in model.inputs)
    script = "".join(part for part in build_boot_script(model).parts if is_text(part))
    for what, size, limit in (
        ("the template", len(template.encode()), TEMPLATE_BYTES),
        ("the document of the runner", len(document.encode()) + room, DOCUMENT),
        ("the boot script of the machine", len(script.encode()), CUSTOM_DATA),
    ):
        if size > limit:
            message = f"{what} has about {size} bytes: too many roles, secrets, inputs or keys"
            yield _refuse(Code.TOO_MANY, message, f"It may have {limit}.", "stack")


def _list_expressions(value: Json) -> Iterator[str]:
    match value:
        case str() if value.startswith("[") and value.endswith("]"):
            yield value
        case dict():
            for item in value.values():
                yield from _list_expressions(item)
        case Sequence() if not isinstance(value, str):
            for item in value:
                yield from _list_expressions(item)
        case _:
            pass


def _refuse(code: Code, message: str, hint: str, section: str = "", name: str = "") -> Finding:
    return Finding(Severity.ERROR, code, message, hint, section, name)
