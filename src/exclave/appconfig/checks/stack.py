"""Checks of `stack.toml`."""

from collections.abc import Mapping

from exclave.appconfig.checks.common import check_unique, is_template
from exclave.appconfig.checks.inert_keys import check_inert_keys
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Report
from exclave.appconfig.model.app import App, Entry
from exclave.appconfig.model.kinds.runner import Runner
from exclave.appconfig.model.kinds.stack import STACK_TYPES, NestedStack, Stack

KNOWN_TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "vpc_nested_template_url": ("/vpc/eks/default/", "/vpc/eks/byo-vpc/"),
    "runner_nested_template_url": ("/runner/asg/",),
}
"""Parts of the addresses of public templates that stand for what a Stack has by itself."""


def check(app: App, report: Report) -> None:
    """Check the Stack, and the machine that it makes."""
    for entry in app.entries_of(Runner):
        check_inert_keys(report, entry.place, entry.value)
    for entry in app.entries_of(Stack):
        value = entry.value
        if not isinstance(value, Stack):
            continue
        cloud = STACK_TYPES.get(value.type, app.cloud)
        if value.type and app.cloud not in {"", "local", cloud}:
            message = f"a Stack of type `{value.type}` does not fit a runner for {app.cloud}"
            fitting = [
                name for name, stack_cloud in STACK_TYPES.items() if stack_cloud == app.cloud
            ]
            hint = f'Write type = "{fitting[0]}".' if fitting else ""
            report.error(Code.CLOUD_MISMATCH, entry.place.child("type"), message, hint)
        for key in KNOWN_TEMPLATES:
            address = getattr(value, key)
            if cloud == "aws" and not is_template(address) and not is_known_template(key, address):
                message = f"`{key}` names a template that no Stack can be made with"
                hint = "Remove the key: a Stack has its own network and runner."
                report.warn(Code.UNKNOWN_TEMPLATE, entry.place.child(key).value, message, hint)
        if value.deployment_scope and cloud != "azure":
            place = entry.place.child("deployment_scope")
            report.warn(Code.NEEDLESS_KEY, place, "`deployment_scope` is for Azure only")
        check_nested(report, entry, value.custom_nested_stacks)


def is_known_template(key: str, address: str) -> bool:
    """Return whether an address stands for the network or the runner that a Stack has by itself."""
    return not address or any(part in address for part in KNOWN_TEMPLATES[key])


def check_nested(report: Report, entry: Entry, stacks: tuple[NestedStack, ...]) -> None:
    """Check the vendor's own templates."""
    check_unique(report, entry.place.child("custom_nested_stacks"), stacks)
    seen: set[int] = set()
    for number, nested in enumerate(stacks):
        place = entry.place.child("custom_nested_stacks", number)
        if nested.index is not None and nested.index in seen:
            message = f"the index {nested.index} occurs twice"
            hint = "Give each its own: they run in ascending order."
            report.error(Code.DUPLICATE_NAME, place.child("index"), message, hint)
        seen.add(-1 if nested.index is None else nested.index)
        for name, text in nested.parameters.items():
            where = place.child("parameters", name)
            if not text:
                report.error(Code.MISSING_KEY, where, f"the parameter `{name}` is empty")
            elif not is_template(text):
                message = f"the parameter `{name}` is not a template"
                hint = 'Other tools accept templates only: "{{.nuon.inputs.inputs.name}}".'
                report.warn(Code.DOUBTFUL_FORMAT, where, message, hint)
