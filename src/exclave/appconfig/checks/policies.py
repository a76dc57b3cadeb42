"""Checks of the rules that plans, manifests and images must pass."""

import re

from exclave.appconfig.checks.common import check_exists, names_of
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Report
from exclave.appconfig.model.app import App, Entry
from exclave.appconfig.model.kinds.policies import CLUSTER, COMPONENT_POLICIES, OLD_POLICIES, Policy

_PACKAGE = re.compile(r"^\s*package\s+nuon\s*(?:#.*)?$", re.MULTILINE)
_RULE = re.compile(r"^\s*(?:deny|warn|pass)\b", re.MULTILINE)


def check(app: App, report: Report) -> None:
    """Check all policies."""
    known = names_of(app.components)
    for entry in app.entries_of(Policy):
        if isinstance(entry.value, Policy):
            _check_engine(report, entry, entry.value)
            _check_components(report, entry, entry.value, known)


def _check_engine(report: Report, entry: Entry, policy: Policy) -> None:
    if not policy.type or policy.type in OLD_POLICIES:
        return
    wanted = "kyverno" if policy.type == CLUSTER else "opa"
    if policy.engine != wanted:
        message = f"a policy for {policy.type} needs the engine {wanted}"
        place = entry.place.child("engine")
        report.error(Code.POLICY_ENGINE, place, message, f'Write engine = "{wanted}".')
        return
    text = next((text for text in entry.texts if text.at == ("contents",)), None)
    if wanted != "opa" or text is None or text.remote or not text.content:
        return
    place = text.start
    if not _PACKAGE.search(text.content):
        message = "the policy is not in `package nuon`"
        report.error(Code.POLICY_CONTENTS, place, message, "Start it with `package nuon`.")
    elif not _RULE.search(text.content):
        message = "the policy has no `deny`, `warn` or `pass` rule"
        hint = "Only these rules are evaluated: write `deny contains msg if { … }`."
        report.error(Code.POLICY_CONTENTS, place, message, hint)


def _check_components(report: Report, entry: Entry, policy: Policy, known: set[str]) -> None:
    place = entry.place.child("components")
    if policy.type in COMPONENT_POLICIES and not policy.components:
        hint = 'Name the components, or write components = ["*"].'
        report.error(Code.MISSING_KEY, place, "`components` is missing", hint)
    if "*" in policy.components and len(policy.components) > 1:
        message = "`*` stands for all components, so the others are needless"
        report.error(Code.CONFLICT, place, message, 'Write components = ["*"].')
    for index, name in enumerate(policy.components):
        if name != "*":
            at = place.child(index)
            check_exists(report, Code.UNKNOWN_COMPONENT, at, name, known)
