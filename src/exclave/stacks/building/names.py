"""Names that must differ, and numbers that a cloud limits, as far as a model shows them."""

import re
from collections.abc import Iterable
from typing import Final

from exclave.appconfig.diagnostics.codes import Code
from exclave.domain.stacks import Cloud
from exclave.stacks.building.texts import Texts, Where
from exclave.stacks.model import InputModel, RoleModel, SecretModel
from exclave.stacks.naming import write_camel

_ROLE_NAME: Final = re.compile(r"[\w+=,.@-]+", re.ASCII)
_BARE: Final = frozenset({"secret", "install", "enablerole"})
"""What is left of the name of a parameter if nothing of its own is in it."""
_MOST_PARAMETERS: Final = 200
_OWN_PARAMETERS: Final = 30
"""Room for the parameters that every Stack has."""


def check_names(
    cloud: str,
    roles: Iterable[tuple[RoleModel, Where]],
    secrets: Iterable[tuple[SecretModel, Where]],
    inputs: Iterable[tuple[InputModel, Where]],
    texts: Texts,
) -> None:
    """Report names that are empty, that a cloud would refuse, or that mean two things."""
    taken: dict[str, str] = {}
    role_names: set[str] = set()
    for role, where in roles:
        if not role.name:
            continue  # it could not be rendered, which was reported
        if cloud == Cloud.AWS and not _ROLE_NAME.fullmatch(role.name):
            message = f"`{role.name}` is not a name of a role: use letters, digits and `+=,.@_-`"
            texts.error(Code.BAD_NAME, where.child("name"), message)
        if role.name in role_names:
            message = f"there are two roles named `{role.name}`"
            texts.error(Code.DUPLICATE_NAME, where.child("name"), message, "Rename one of them.")
            continue
        role_names.add(role.name)
        key = write_camel(role.key)
        _claim(taken, f"Enable{key}Role", where, f"the role `{role.name}`", texts)
    for secret, where in secrets:
        _claim(
            taken, f"{write_camel(secret.name)}Secret", where, f"the secret `{secret.name}`", texts
        )
    for item, where in inputs:
        _claim(taken, f"Install{write_camel(item.name)}", where, f"the input `{item.name}`", texts)
    if cloud == Cloud.AWS and len(taken) > _MOST_PARAMETERS - _OWN_PARAMETERS:
        message = f"roles, secrets and inputs need {len(taken)} parameters, which are too many"
        hint = f"A Stack may have {_MOST_PARAMETERS}, and {_OWN_PARAMETERS} are its own."
        texts.error(Code.TOO_MANY, Where("stack"), message, hint)


def _claim(taken: dict[str, str], name: str, where: Where, owner: str, texts: Texts) -> None:
    """Report a name that something else has; names of parameters differ by more than case."""
    low = name.lower()
    if low in taken:
        message = f"{owner} has the same name in the Stack as {taken[low]}"
        hint = f"Both are `{name}` there: give one another name, in letters and digits."
        texts.error(Code.DUPLICATE_NAME, where.child("name"), message, hint)
    elif low in _BARE:
        message = f"{owner} has no letter or digit in its name"
        texts.error(Code.BAD_NAME, where.child("name"), message)
    taken.setdefault(low, owner)
