"""A template of Azure Resource Manager, deployed as far as its text says what there will be."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.emulated_azure.expressions import (
    BadExpressionError,
    Call,
    Functions,
    Read,
    evaluate,
    is_expression,
    parse,
)
from tests.support.emulated_azure.functions import PURE, join_id, make_guid

SUBSCRIPTION = "22222222-2222-4222-8222-222222222222"
TENANT = "11111111-1111-4111-8111-111111111111"
LOGS = "exclave.westeurope-1.ingest.monitor.azure.com"
LATE = frozenset({"reference"})
"""What only exists during a deployment, so that variables and names cannot contain it."""
TYPES = {"string": str, "securestring": str, "bool": bool, "int": int}


@dataclass
class Deployment:
    """A template with the values of the customer."""

    template: Mapping[str, Any]
    values: Mapping[str, Any]
    group: str = "rg"
    location: str = "westeurope"
    deployed: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What other templates return, by the names of their deployments."""

    @property
    def group_id(self) -> str:
        return f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{self.group}"

    def list_resources(self) -> list[dict[str, Any]]:
        """Return the resources that exist, with all expressions evaluated, and their ids."""
        self._check_values()
        return [
            {**self.resolve(body), "id": self._find_id(body)}
            for body in self.template["resources"]
            if self.resolve(body.get("condition", True))
        ]

    def find(self, name: str) -> dict[str, Any]:
        """Return the resource that is called so in Terraform too."""
        (found,) = [body for body in self.list_resources() if body["comments"] == name]
        return found

    def read_output(self, name: str) -> Any:
        """Return an output."""
        return self.resolve(self.template["outputs"][name]["value"])

    def resolve(self, value: Any) -> Any:
        """Return a value of the template with all expressions evaluated."""
        match value:
            case str():
                return self._read_text(value, self._list_functions())
            case dict() if "template" in value:
                # What its expressions mean is decided within it.
                return self.resolve({k: v for k, v in value.items() if k != "template"})
            case dict():
                return {self.resolve(key): self.resolve(item) for key, item in value.items()}
            case list():
                return [self.resolve(item) for item in value]
            case _:
                return value

    def _read_text(self, text: str, functions: Functions) -> Any:
        if is_expression(text):
            return evaluate(parse(text[1:-1]), functions)
        return text[1:] if text.startswith("[[") and text.endswith("]") else text

    def _check_values(self) -> None:
        """Refuse values that Azure would refuse."""
        declared = self.template["parameters"]
        unknown = set(self.values) - set(declared)
        missing = {name for name, body in declared.items() if "defaultValue" not in body}
        missing -= set(self.values)
        if unknown or missing:
            message = f"unknown: {sorted(unknown)}, missing: {sorted(missing)}"
            raise BadExpressionError(message)
        for name, body in declared.items():
            value = self._read_parameter(name)
            assert isinstance(value, TYPES[body["type"]]), name
            assert value in body.get("allowedValues", [value]), name
            assert not isinstance(value, str) or len(value) >= body.get("minLength", 0), name

    def _list_functions(self) -> dict[str, Callable[..., Any]]:
        facts = {"id": self.group_id, "name": self.group, "location": self.location}
        suffixes = {"keyvaultDns": ".vault.azure.net", "acrLoginServer": ".azurecr.io"}
        return {
            **PURE,
            "environment": lambda: {"suffixes": suffixes},
            "parameters": self._read_parameter,
            "reference": self._refer,
            "resourceGroup": lambda: facts,
            "resourceId": lambda type_, *names: join_id(self.group_id, type_, names),
            "subscription": lambda: {"subscriptionId": SUBSCRIPTION, "tenantId": TENANT},
            "subscriptionResourceId": lambda type_, *names: join_id(
                f"/subscriptions/{SUBSCRIPTION}", type_, names
            ),
            "variables": self._read_variable,
        }

    def _read_parameter(self, name: str) -> Any:
        if name in self.values:
            return self.values[name]
        default = self.template["parameters"][name]["defaultValue"]
        return self.resolve(default)

    def _read_variable(self, name: str) -> Any:
        return self.resolve(self.template["variables"][name])

    def _refer(self, resource: str, version: str) -> Any:
        assert version[:2] == "20"
        name = resource.rpartition("/")[2]
        if name in self.deployed:
            outputs = {key: {"value": value} for key, value in self.deployed[name].items()}
            return {"outputs": outputs}
        if "/dataCollectionRules/" in resource:
            endpoints = {"logsIngestion": f"https://{LOGS}"}
            return {
                "immutableId": f"dcr-{make_guid(name).replace('-', '')}",
                "endpoints": endpoints,
            }
        inner = self.find_template(resource)
        if inner is not None:
            outputs = inner.template["outputs"]
            return {"outputs": {key: {"value": inner.read_output(key)} for key in outputs}}
        if "/userAssignedIdentities/" not in resource:
            message = f"nothing is known about {resource}"
            raise BadExpressionError(message)
        known = {self._find_id(body) for body in self.template["resources"]}
        assert resource in known, resource
        return {"clientId": make_guid("client", name), "principalId": make_guid("owner", name)}

    def find_template(self, resource: str) -> "Deployment | None":
        """Return the deployment of a template within this one."""
        for body in self.template["resources"]:
            if body["type"].endswith("/deployments") and self._find_id(body) == resource:
                facts = body["properties"]
                given = self.resolve(facts["parameters"])
                values = {key: value["value"] for key, value in given.items()}
                return Deployment(facts["template"], values, self.group, self.location)
        return None

    def _find_id(self, body: Mapping[str, Any]) -> str:
        names = tuple(self.resolve(body["name"]).split("/"))
        return join_id(self.group_id, body["type"], names)


def list_calls(tree: Any) -> Iterator[Call]:
    """Return all calls in an expression."""
    match tree:
        case Call(_, arguments):
            yield tree
            for item in arguments:
                yield from list_calls(item)
        case Read(value):
            yield from list_calls(value)


def list_expressions(value: Any) -> Iterator[str]:
    """Return all expressions of a template, those in keys too, but not those of templates in it."""
    match value:
        case str() if is_expression(value):
            yield value
        case dict():
            for key, item in value.items():
                if key != "template":
                    yield from list_expressions(key)
                    yield from list_expressions(item)
        case list():
            for item in value:
                yield from list_expressions(item)


def check_template(template: Mapping[str, Any]) -> None:
    """Refuse what Azure refuses of a template before it deploys anything."""
    deployment = Deployment(template, {})
    for text in list_expressions(template):
        assert len(text) <= 24_576
        for call in list_calls(parse(text[1:-1])):
            if call.name == "parameters":
                assert call.arguments[0] in template["parameters"], call
            if call.name == "variables":
                assert call.arguments[0] in template["variables"], call
    early = [template["variables"]]
    early += [
        {key: body.get(key) for key in ("name", "condition")} for body in template["resources"]
    ]
    for text in list_expressions(early):
        assert not LATE & {call.name for call in list_calls(parse(text[1:-1]))}, text
    ids = {deployment._find_id(body) for body in template["resources"]}
    for body in template["resources"]:
        for needed in body.get("dependsOn", ()):
            assert deployment.resolve(needed) in ids, needed
    assert len({body["comments"] for body in template["resources"]}) == len(template["resources"])


def list_secure(template: Mapping[str, Any]) -> set[str]:
    """Return the parameters that Azure shows nobody."""
    return {name for name, body in template["parameters"].items() if body["type"] == "securestring"}
