"""Conversion of typed tables to JSON and back, as stored in a config version."""

from collections.abc import Mapping
from typing import TypeVar

from exclave.appconfig.model.fields import Field, Shape, Table
from exclave.base.errors import Conflict
from exclave.base.json_values import Json, JsonObject, require_list, require_object

T = TypeVar("T", bound=Table)


class FrozenElsewhere(Conflict):
    """A stored part has a key that this version does not know."""

    code = "config_too_new"
    hint = "The app was synced by a newer server; upgrade this one."


def freeze(table: Table) -> dict[str, Json]:
    """Return a table as JSON: keys as in TOML, only values that differ from their default.

    The contents of referenced files are included, so nothing else is needed to read it.
    """
    return {
        key: _freeze_value(value)
        for key, field in table.FIELDS.items()
        if (value := getattr(table, field.attribute)) != field.default
    }


def thaw(model: type[T], frozen: JsonObject) -> T:
    """Return the table that `freeze` was called with."""
    values: dict[str, object] = {}
    for key, value in frozen.items():
        field = model.FIELDS.get(key)
        if field is None:
            raise FrozenElsewhere(f"`{key}` is not a key of {model.__name__}", key=key)
        try:
            values[field.attribute] = _thaw_value(field, value)
        except ValueError as error:
            raise FrozenElsewhere(f"{error} in {model.__name__}", key=key) from error
    return model(**values)


def _freeze_value(value: object) -> Json:
    match value:
        case Table():
            return freeze(value)
        case Mapping():
            return {name: _freeze_value(element) for name, element in value.items()}
        case tuple():
            return [_freeze_value(element) for element in value]
        case str() | bool() | int() | float() | None:
            return value
        case _:
            message = f"a {type(value).__name__} has no form as JSON"
            raise TypeError(message)


def _thaw_value(field: Field, value: Json) -> object:
    model, what = field.model, f"`{field.key}`"
    match field.shape:
        case Shape.TABLE if model is not None:
            return thaw(model, require_object(value, what))
        case Shape.TABLES if model is not None:
            return tuple(
                thaw(model, require_object(element, what)) for element in require_list(value, what)
            )
        case Shape.TABLE_MAP if model is not None:
            tables = require_object(value, what)
            return {
                name: thaw(model, require_object(element, what)) for name, element in tables.items()
            }
        case Shape.TEXTS:
            return tuple(require_list(value, what))
        case _:
            return value
