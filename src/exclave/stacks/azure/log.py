"""The store of the runner's log: a table in Log Analytics, and the rule by which it gets there."""

from collections.abc import Mapping

from exclave.base.json_values import Json, JsonObject
from exclave.stacks.azure.names import list_tags, write_name
from exclave.stacks.azure.nested import SCHEMA
from exclave.stacks.azure.references import Fact, Node, ParameterKind, ParameterRef
from exclave.stacks.azure.resources import LOG_RULES
from exclave.stacks.model import StackModel

STREAM = "stream"
"""The output of the template: where the runner posts its lines."""
VALUES: Mapping[str, Node] = {
    "location": Fact.LOCATION,
    "days": ParameterRef("logDays", ParameterKind.NUMBER),
}
"""The parameters of the template."""
_TABLE = "ExclaveRunner_CL"
_TEXTS = ("Install", "Machine", "Kind", "Line")
_WORKSPACES = "Microsoft.OperationalInsights/workspaces"


def build_log_template(model: StackModel) -> JsonObject:
    """Return the template, which is the same in both forms."""
    name = write_name(model, "log")
    types = {"location": "string", "days": "int"}
    rule = f"resourceId('{LOG_RULES}', '{name}')"
    made = f"reference({rule}, '2023-03-11')"
    path = f"'/dataCollectionRules/', {made}.immutableId, '/streams/Custom-{_TABLE}'"
    stream = f"[concat({made}.endpoints.logsIngestion, {path})]"
    return {
        "$schema": SCHEMA,
        "contentVersion": "1.0.0.0",
        "parameters": {key: {"type": type_} for key, type_ in types.items()},
        "variables": {},
        "resources": [
            _write_workspace(model, name),
            _write_table(name),
            _write_rule(model, name),
        ],
        "outputs": {STREAM: {"type": "string", "value": stream}},
    }


def _write_workspace(model: StackModel, name: str) -> JsonObject:
    days = "[parameters('days')]"
    properties: JsonObject = {"sku": {"name": "PerGB2018"}, "retentionInDays": days}
    return {
        **_write_head(_WORKSPACES, "2023-09-01", name, "LogWorkspace"),
        "location": "[parameters('location')]",
        "tags": dict(list_tags(model)),
        "properties": properties,
    }


def _write_table(name: str) -> JsonObject:
    schema: JsonObject = {"name": _TABLE, "columns": _list_columns()}
    return {
        **_write_head(f"{_WORKSPACES}/tables", "2022-10-01", f"{name}/{_TABLE}", "LogTable"),
        "properties": {"plan": "Analytics", "schema": schema},
        "dependsOn": [f"[resourceId('{_WORKSPACES}', '{name}')]"],
    }


def _write_rule(model: StackModel, name: str) -> JsonObject:
    stream = f"Custom-{_TABLE}"
    workspace = f"[resourceId('{_WORKSPACES}', '{name}')]"
    target: JsonObject = {"name": "log", "workspaceResourceId": workspace}
    flow: JsonObject = {
        "streams": [stream],
        "destinations": ["log"],
        "transformKql": "source",
        "outputStream": stream,
    }
    return {
        **_write_head(LOG_RULES, "2023-03-11", name, "LogRule"),
        "location": "[parameters('location')]",
        "kind": "Direct",
        "tags": dict(list_tags(model)),
        "properties": {
            "streamDeclarations": {stream: {"columns": _list_columns()}},
            "destinations": {"logAnalytics": [target]},
            "dataFlows": [flow],
        },
        "dependsOn": [f"[resourceId('{_WORKSPACES}/tables', '{name}', '{_TABLE}')]"],
    }


def _write_head(type_: str, version: str, name: str, comments: str) -> dict[str, Json]:
    return {"type": type_, "apiVersion": version, "name": name, "comments": comments}


def _list_columns() -> list[Json]:
    time: JsonObject = {"name": "TimeGenerated", "type": "datetime"}
    return [time, *({"name": name, "type": "string"} for name in _TEXTS)]
