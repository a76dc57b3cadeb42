"""Models of Stacks as JSON: a version keeps the model that its files and its diff are made from."""

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any, TypeVar

from exclave.base.json_values import JsonObject
from exclave.domain.stacks import Cloud, RoleKind
from exclave.stacks.base import SigningKey
from exclave.stacks.model import (
    AccountPin,
    InputModel,
    NestedModel,
    PolicyModel,
    ProgramPins,
    RoleModel,
    SecretModel,
    StackModel,
)

Model = TypeVar("Model")

NO_PROGRAM = ProgramPins("", "", "")
"""The pins of a stored model: those of the program come with the files."""


def write_model(model: StackModel) -> JsonObject:
    """Return a model as it is stored: without keys and program, which come with the files."""
    return asdict(replace(model, keys=(), program=NO_PROGRAM))


def read_model(
    stored: JsonObject, keys: tuple[SigningKey, ...] = (), program: ProgramPins = NO_PROGRAM
) -> StackModel:
    """Return a stored model with the keys and the program that its files are to have."""
    row: Any = stored
    return _read(
        StackModel,
        row,
        cloud=Cloud(row["cloud"]),
        account=_read(AccountPin, row["account"]),
        keys=keys,
        program=program,
        roles=tuple(_read_role(role) for role in row["roles"]),
        secrets=tuple(_read(SecretModel, secret) for secret in row["secrets"]),
        inputs=tuple(_read(InputModel, item) for item in row["inputs"]),
        nested=tuple(_read(NestedModel, nested) for nested in row["nested"]),
    )


def _read_role(row: Any) -> RoleModel:
    policies = tuple(_read(PolicyModel, policy) for policy in row["policies"])
    return _read(RoleModel, row, kind=RoleKind(row["kind"]), policies=policies)


def _read(model: type[Model], row: Mapping[str, Any], **given: Any) -> Model:
    """Return a model of a row; what this version does not know is left out, lists are tuples."""
    known = {field.name for field in fields(model)}  # type: ignore[arg-type]
    plain = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in row.items()
        if name in known
    }
    return model(**{**plain, **given})
