"""Checks of `stack.toml`."""

import re

from exclave.appconfig.checks.common import check_unique, is_template
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Report
from exclave.appconfig.model.app import App, Entry
from exclave.appconfig.model.kinds.stack import STACK_TYPES, NestedStack, Stack

_IN_S3 = re.compile(r"https://[^/]*(?:\bs3\b[^/]*\.amazonaws\.com|\{\{)|\{\{")
_NEEDED = ("vpc_nested_template_url", "runner_nested_template_url")


def check(app: App, report: Report) -> None:
    """Check the Stack."""
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
        for key in _NEEDED:
            if cloud == "aws" and not getattr(value, key):
                hint = "Give the https address of a CloudFormation template."
                report.warn(Code.WANTED_KEY, entry.place, f"`{key}` is missing for AWS", hint)
            elif cloud == "aws" and not _IN_S3.match(getattr(value, key)):
                message = f"`{key}`: CloudFormation reads templates from S3 only"
                hint = "Write https://<bucket>.s3.<region>.amazonaws.com/<path>."
                report.warn(Code.DOUBTFUL_FORMAT, entry.place.child(key).value, message, hint)
        if value.deployment_scope and cloud != "azure":
            place = entry.place.child("deployment_scope")
            report.warn(Code.NEEDLESS_KEY, place, "`deployment_scope` is for Azure only")
        check_nested(report, entry, value.custom_nested_stacks)


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
