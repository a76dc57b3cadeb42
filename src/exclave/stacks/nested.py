"""Flattening: a vendor's own CloudFormation template becomes a part of the one template.

So a Stack needs no bucket for the templates in it, and the customer reads one file. A nested
template sees its own names only: it cannot refer to the runner, its roles or its secrets.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from exclave.base.json_values import Json, JsonObject
from exclave.stacks.naming import write_camel
from exclave.stacks.template_text import TemplateError, read_template

MOST_RESOURCES: Final = 500
"""What CloudFormation takes in one template."""
_SECTIONS: Final = frozenset(
    {
        "AWSTemplateFormatVersion", "Description", "Metadata", "Parameters", "Mappings",
        "Conditions", "Resources", "Outputs",
    }
)  # fmt: skip
_PSEUDO: Final = frozenset(
    f"AWS::{name}"
    for name in (
        "AccountId", "NoValue", "NotificationARNs", "Partition", "Region", "StackId", "StackName",
        "URLSuffix",
    )
)  # fmt: skip
_LOGICAL_ID: Final = re.compile(r"[A-Za-z0-9]{1,200}")
_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
_SSM: Final = "AWS::SSM::Parameter::"


@dataclass(frozen=True, slots=True)
class FlatTemplate:
    """The parts of a nested template, with names and references for the template around it.

    All names but those of `outputs` begin with a prefix made from the name of the nested Stack.
    """

    resources: Mapping[str, JsonObject] = field(default_factory=dict)
    parameters: Mapping[str, JsonObject] = field(default_factory=dict)
    """The parameters that nobody gave a value: they become parameters of the Stack."""
    conditions: Mapping[str, JsonObject] = field(default_factory=dict)
    mappings: Mapping[str, JsonObject] = field(default_factory=dict)
    outputs: Mapping[str, JsonObject] = field(default_factory=dict)
    """By their own names: `Value`, and `Condition` if it has one."""
    left_out: tuple[str, ...] = ()
    """What has no effect inside another template, in words."""


def write_prefix(name: str) -> str:
    """Return what the names of a nested Stack begin with; `Nested` keeps them apart from ours."""
    return f"Nested{write_camel(name)}"


def flatten_template(
    name: str, text: str, parameters: Mapping[str, str], known: Collection[str] = ()
) -> FlatTemplate:
    """Return the parts of the nested Stack `name` for the template around it.

    `parameters` are the values that the app gives. A parameter without one is that of the template
    around it if `known` has its name, else it becomes a parameter of the Stack. Raise
    `TemplateError` for what is no template, or cannot be part of another one.
    """
    template = read_template(text)
    _check_sections(template)
    declared = _read_tables(template, "Parameters")
    unknown = sorted(set(parameters) - set(declared))
    if unknown:
        message = f"the template has no parameter `{unknown[0]}`"
        raise TemplateError(message)
    return _Flattening(name, template, parameters, frozenset(known)).flatten()


def _check_sections(template: JsonObject) -> None:
    foreign = sorted(set(template) - _SECTIONS)
    if foreign:
        message = f"`{foreign[0]}` cannot be in a nested template: it would act on the whole Stack"
        raise TemplateError(message)
    resources = _read_tables(template, "Resources")
    if len(resources) > MOST_RESOURCES:
        message = f"a template may have {MOST_RESOURCES} resources"
        raise TemplateError(message)


def _read_tables(template: JsonObject, section: str) -> Mapping[str, JsonObject]:
    """Return a section as tables by their logical ids."""
    value = {} if template.get(section) is None else template[section]
    if not isinstance(value, Mapping):
        message = f"`{section}` is not a mapping"
        raise TemplateError(message)
    tables: dict[str, JsonObject] = {}
    for key, table in value.items():
        if not _LOGICAL_ID.fullmatch(key):
            message = f"`{key}` in `{section}` is not a name: use letters and digits"
            raise TemplateError(message)
        if not isinstance(table, Mapping):
            message = f"`{key}` in `{section}` is not a mapping"
            raise TemplateError(message)
        tables[key] = table
    return tables


class _Flattening:
    """The renaming of one template."""

    def __init__(
        self,
        name: str,
        template: JsonObject,
        given: Mapping[str, str],
        known: frozenset[str],
    ) -> None:
        self.prefix = write_prefix(name)
        self.resources = _read_tables(template, "Resources")
        self.conditions = _read_tables(template, "Conditions")
        self.mappings = _read_tables(template, "Mappings")
        self.outputs = _read_tables(template, "Outputs")
        self.declared = _read_tables(template, "Parameters")
        self.own: dict[str, JsonObject] = {}
        """The parameters that become those of the Stack, by their new names."""
        self.values: dict[str, Json] = {
            key: self._choose_value(key, table, given, known)
            for key, table in self.declared.items()
        }
        self.left_out: list[str] = []

    def flatten(self) -> FlatTemplate:
        """Return the parts with their new names."""
        return FlatTemplate(
            resources={
                self._rename(key): self._flatten_resource(key, table)
                for key, table in self.resources.items()
            },
            parameters=self.own,
            conditions={
                self._rename(key): self._walk_table(table, in_condition=True)
                for key, table in self.conditions.items()
            },
            mappings={self._rename(key): table for key, table in self.mappings.items()},
            outputs={key: self._flatten_output(key, table) for key, table in self.outputs.items()},
            left_out=tuple(self.left_out),
        )

    def _rename(self, key: str) -> str:
        return f"{self.prefix}{key}"

    def _choose_value(
        self, key: str, table: JsonObject, given: Mapping[str, str], known: frozenset[str]
    ) -> Json:
        """Return what stands for a parameter: a value, or a reference to one of the Stack."""
        kind = str(table.get("Type", "String"))
        if key in given and not kind.startswith(_SSM):
            is_list = kind == "CommaDelimitedList" or kind.startswith("List<")
            return [item.strip() for item in given[key].split(",")] if is_list else given[key]
        if key in known and key not in given:
            return {"Ref": key}
        # CloudFormation looks up the name of an SSM parameter for parameters only.
        default = {"Default": given[key]} if key in given else {}
        self.own[self._rename(key)] = {**table, **default}
        return {"Ref": self._rename(key)}

    def _flatten_resource(self, key: str, table: JsonObject) -> JsonObject:
        if not isinstance(table.get("Type"), str):
            message = f"the resource `{key}` has no `Type`"
            raise TemplateError(message)
        flat: dict[str, Json] = {}
        for name, value in table.items():
            match name, value:
                case "Condition", str():
                    flat[name] = self._find_name(self.conditions, value, "condition")
                case "DependsOn", _:
                    needed = [value] if isinstance(value, str) else value
                    if not isinstance(needed, list):
                        message = f"`DependsOn` of `{key}` is not a list of resources"
                        raise TemplateError(message)
                    flat[name] = [
                        self._find_name(self.resources, item, "resource") for item in needed
                    ]
                case _:
                    flat[name] = self._walk(value)
        return flat

    def _flatten_output(self, key: str, table: JsonObject) -> JsonObject:
        if "Value" not in table:
            message = f"the output `{key}` has no `Value`"
            raise TemplateError(message)
        if "Export" in table:
            self.left_out.append(f"the output `{key}` is not exported to other stacks")
        flat: dict[str, Json] = {"Value": self._walk(table["Value"])}
        if "Condition" in table:
            flat["Condition"] = self._find_name(self.conditions, table["Condition"], "condition")
        return flat

    def _find_name(self, names: Collection[str], name: Json, what: str) -> str:
        """Return the new name of a part of this template."""
        if not isinstance(name, str) or name not in names:
            message = f"the template has no {what} `{name}`"
            raise TemplateError(message)
        return self._rename(name)

    def _walk_table(self, table: JsonObject, *, in_condition: bool = False) -> JsonObject:
        value = self._walk(table, in_condition=in_condition)
        if not isinstance(value, Mapping):
            raise TemplateError("a condition is not a function of conditions")
        return value

    def _walk(self, value: Json, *, in_condition: bool = False) -> Json:
        """Return a value in which every reference has its new name."""
        if isinstance(value, list):
            return [self._walk(item, in_condition=in_condition) for item in value]
        if not isinstance(value, Mapping):
            return value
        if len(value) == 1:
            ((function, argument),) = value.items()
            if function == "Condition" and in_condition:
                return {"Condition": self._find_name(self.conditions, argument, "condition")}
            if function == "Ref" or function.startswith("Fn::"):
                return self._call(function, argument, in_condition=in_condition)
        return {key: self._walk(item, in_condition=in_condition) for key, item in value.items()}

    def _call(self, function: str, argument: Json, *, in_condition: bool) -> Json:
        match function:
            case "Ref":
                return self._refer(argument)
            case "Fn::GetAtt":
                resource, attributes = _split_attribute(argument)
                name = self._find_name(self.resources, resource, "resource")
                return {function: [name, *(self._walk(item) for item in attributes)]}
            case "Fn::Sub":
                return self._substitute(argument)
            case "Fn::If":
                return {function: self._rename_first(argument, self.conditions, "condition")}
            case "Fn::FindInMap":
                return {function: self._rename_first(argument, self.mappings, "mapping")}
            case "Fn::Transform":
                raise TemplateError("`Fn::Transform` cannot be in a nested template")
            case _:
                return {function: self._walk(argument, in_condition=in_condition)}

    def _rename_first(self, argument: Json, names: Collection[str], what: str) -> list[Json]:
        if not isinstance(argument, list) or not argument:
            message = f"a function that names a {what} has no list of arguments"
            raise TemplateError(message)
        return [
            self._find_name(names, argument[0], what),
            *(self._walk(item) for item in argument[1:]),
        ]

    def _refer(self, name: Json) -> Json:
        if isinstance(name, str) and name in self.values:
            return self.values[name]
        if isinstance(name, str) and name in _PSEUDO:
            return {"Ref": name}
        return {"Ref": self._find_name(self.resources, name, "resource or parameter")}

    def _substitute(self, argument: Json) -> Json:
        text, extra = _split_substitution(argument)
        variables = {key: self._walk(value) for key, value in extra.items()}
        parts: list[str] = []
        end = 0
        for match in _VARIABLE.finditer(text):
            parts += [text[end : match.start()], self._write_variable(match[1], variables)]
            end = match.end()
        result = "".join([*parts, text[end:]])
        if all(match[1].startswith("!") for match in _VARIABLE.finditer(result)):
            return result.replace("${!", "${")
        return {"Fn::Sub": [result, variables] if variables else result}

    def _write_variable(self, name: str, variables: dict[str, Json]) -> str:
        """Return one variable of a text with its new name, or the value that stands for it."""
        if name.startswith("!") or name in variables or name in _PSEUDO:
            return f"${{{name}}}"
        if name in self.values:
            value = _write_text(self.values[name])
            if not isinstance(value, str):
                return f"${{{value['Ref']}}}"
            if not set("${}") & set(value):
                return value
            # Inside the text it could become, or spoil, a variable.
            variables[self._rename(name)] = value
            return f"${{{self._rename(name)}}}"
        resource, dot, attribute = name.partition(".")
        return f"${{{self._find_name(self.resources, resource, 'resource')}{dot}{attribute}}}"


def _write_text(value: Json) -> str | JsonObject:
    """Return the value of a parameter as text; a reference stays one."""
    if isinstance(value, Mapping):
        return value
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _split_attribute(argument: Json) -> tuple[Json, Iterable[Json]]:
    """Return the resource and what is read of it; `a.b.c` reads `b.c` of `a`."""
    if isinstance(argument, str):
        resource, dot, attribute = argument.partition(".")
        if dot:
            return resource, [attribute]
    elif isinstance(argument, list) and len(argument) > 1:
        return argument[0], argument[1:]
    raise TemplateError("`Fn::GetAtt` needs a resource and an attribute")


def _split_substitution(argument: Json) -> tuple[str, JsonObject]:
    match argument:
        case str():
            return argument, {}
        case [str(text), dict(variables)]:
            return text, variables
        case _:
            raise TemplateError("`Fn::Sub` needs a text, or a text and a mapping")
