"""JSON Schema of each file kind, generated from the field descriptions, for editors."""

from collections.abc import Mapping

from exclave.appconfig.catalog import FileKind
from exclave.appconfig.model.fields import NOTHING, Field, Need, Shape, Table
from exclave.appconfig.model.sections import COMPONENT_TYPES
from exclave.base.json_values import Json, JsonObject

Tables = dict[str, dict[str, Json]]
"""The schemas of tables that others contain, by name."""

_DIALECT = "http://json-schema.org/draft-07/schema#"
"""The newest that the TOML plugins of editors understand."""
_SCALAR = ["string", "integer", "number", "boolean"]
_SIMPLE: Mapping[Shape, JsonObject] = {
    Shape.TEXT: {"type": "string"},
    Shape.FLAG: {"type": "boolean"},
    Shape.NUMBER: {"type": "integer"},
    Shape.ANY: {},
    Shape.TEXTS: {"type": "array", "items": {"type": _SCALAR}},
    Shape.TEXT_MAP: {"type": "object"},
    Shape.FLAG_MAP: {"type": "object", "additionalProperties": {"type": "boolean"}},
    Shape.MAPS: {"anyOf": [{"type": "object"}, {"type": "array", "items": {"type": "object"}}]},
}


def build_schema(kind: FileKind) -> dict[str, Json]:
    """Return the schema of a file kind."""
    tables: Tables = {}
    type_name = getattr(kind.model, "TYPE", "")
    body = _build_table(kind.model, tables, {"type": {"const": type_name}} if type_name else {})
    schema: dict[str, Json] = {"$schema": _DIALECT, "title": kind.name, **body}
    if tables:
        schema["definitions"] = dict(sorted(tables.items()))
    return schema


def build_component_schema() -> dict[str, Json]:
    """Return the schema of any component; its `type` selects the keys."""
    tables: Tables = {}
    rules: list[Json] = [
        {
            "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
            "then": {"$ref": f"#/definitions/{_define(model, tables)}"},
        }
        for name, model in COMPONENT_TYPES.items()
    ]
    return {
        "$schema": _DIALECT,
        "title": "component",
        "description": "A part of the app that is built and deployed by itself.",
        "type": "object",
        "properties": {"type": {"enum": list(COMPONENT_TYPES)}},
        "required": ["type"],
        "allOf": rules,
        "definitions": dict(sorted(tables.items())),
    }


def _build_table(
    model: type[Table], tables: Tables, more: Mapping[str, JsonObject] = NOTHING
) -> dict[str, Json]:
    """Return the schema of a table; `more` adds to the schemas of its keys."""
    properties: dict[str, Json] = {
        key: {**_build_field(field, tables), **more.get(key, {})}
        for key, field in model.FIELDS.items()
    }
    for alias, key in model.ALIASES.items():
        properties[alias] = properties[key]
    for key, dead in model.DEAD.items():
        if dead.silent:
            properties[key] = {"description": dead.hint}
    needed = [
        key
        for key, field in model.FIELDS.items()
        if field.need is Need.REQUIRED and field.unless is None
    ]
    body: dict[str, Json] = {
        "description": (model.__doc__ or "").strip(),
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    return {**body, "required": needed} if needed else body


def _build_field(field: Field, tables: Tables) -> dict[str, Json]:
    built: dict[str, Json] = {"description": _write_doc(field)}
    if field.model is None:
        built |= _SIMPLE[field.shape]
        if field.shape is Shape.TEXT and not field.is_strict:
            built["type"] = ["string", "integer", "boolean"]
    else:
        inner: JsonObject = {"$ref": f"#/definitions/{_define(field.model, tables)}"}
        match field.shape:
            case Shape.TABLES:
                built |= {"type": "array", "items": inner}
            case Shape.TABLE_MAP:
                built |= {"type": "object", "additionalProperties": inner}
            case _:
                built = {**built, "allOf": [inner]}
    if field.choices:
        built |= _build_choices(field)
    if isinstance(field.default, str | int) and field.default not in ("", None):
        built["default"] = field.default
    if field.deprecated:
        built["deprecated"] = True
    return built


def _build_choices(field: Field) -> dict[str, Json]:
    values: list[Json] = [*field.choices, *field.other_choices, *field.old_choices]
    if field.need is not Need.REQUIRED:
        values.append("")
    if field.templated:
        return {"anyOf": [{"enum": values}, {"type": "string", "pattern": "\\{\\{"}]}
    return {"enum": values}


def _define(model: type[Table], tables: Tables) -> str:
    name = model.__name__
    if name not in tables:
        tables[name] = {}
        tables[name].update(_build_table(model, tables))
    return name


def _write_doc(field: Field) -> str:
    notes = [field.doc]
    if field.templated:
        notes.append("May be a template.")
    if field.reference:
        notes.append("May name a file: `./path`.")
    if field.deprecated:
        notes.append(f"Deprecated: {field.deprecated}")
    return " ".join(notes)
