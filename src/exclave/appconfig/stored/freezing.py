"""Conversion of typed tables to JSON and back, as stored in a config version."""

from collections.abc import Mapping
from typing import Any, TypeVar

from exclave.appconfig.model.fields import Field, Shape, Table
from exclave.base.errors import Conflict

T = TypeVar("T", bound=Table)


class FrozenElsewhere(Conflict):
    """A stored part has a key that this version does not know."""

    code = "config_too_new"
    hint = "The app was synced by a newer server; upgrade this one."


def freeze(table: Table) -> dict[str, Any]:
    """Return a table as JSON: keys as in TOML, only values that differ from their default.

    The contents of referenced files are included, so nothing else is needed to read it.
    """
    return {
        key: _freeze_value(value)
        for key, field in table.FIELDS.items()
        if (value := getattr(table, field.attribute)) != field.default
    }


def thaw(model: type[T], frozen: Mapping[str, Any]) -> T:
    """Return the table that `freeze` was called with."""
    values: dict[str, object] = {}
    for key, value in frozen.items():
        field = model.FIELDS.get(key)
        if field is None:
            raise FrozenElsewhere(f"`{key}` is not a key of {model.__name__}", key=key)
        values[field.attribute] = _thaw_value(field, value)
    return model(**values)


def _freeze_value(value: object) -> object:
    match value:
        case Table():
            return freeze(value)
        case Mapping():
            return {name: _freeze_value(element) for name, element in value.items()}
        case tuple():
            return [_freeze_value(element) for element in value]
        case _:
            return value


def _thaw_value(field: Field, value: Any) -> object:
    model = field.model
    match field.shape:
        case Shape.TABLE if model is not None:
            return thaw(model, value)
        case Shape.TABLES if model is not None:
            return tuple(thaw(model, element) for element in value)
        case Shape.TABLE_MAP if model is not None:
            return {name: thaw(model, element) for name, element in value.items()}
        case Shape.TEXTS:
            return tuple(value)
        case _:
            return value
