"""Names that must be unique."""

from exclave.appconfig.checks.common import squeeze
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Report
from exclave.appconfig.model.app import App, Entry
from exclave.appconfig.model.fields import Table
from exclave.appconfig.model.kinds.actions import Action
from exclave.appconfig.model.kinds.branches import Branch
from exclave.appconfig.model.kinds.components import Component
from exclave.appconfig.model.kinds.inputs import Input, InputGroup
from exclave.appconfig.model.kinds.installs import Install
from exclave.appconfig.model.kinds.kubernetes_contexts import KubernetesContext
from exclave.appconfig.model.kinds.permissions import NamedPolicy, Role
from exclave.appconfig.model.kinds.runbooks import Runbook
from exclave.appconfig.model.kinds.secrets import Secret
from exclave.appconfig.model.kinds.triggers import EventRule

UNIQUE: tuple[type[Table], ...] = (
    Component, Action, Runbook, Input, InputGroup, Secret, Role, NamedPolicy, KubernetesContext,
    Branch, EventRule, Install,
)  # fmt: skip


def check(app: App, report: Report) -> None:
    """Report names that occur twice."""
    for model in UNIQUE:
        seen: dict[str, Entry] = {}
        for entry in app.entries_of(model):
            name = squeeze(entry.name)
            if name in seen:
                first = seen[name].place
                line = first.source.locate_key((*first.at, "name")).line
                message = f"{entry.title} is defined twice"
                hint = f"The first one is in {first.source.path}:{line}. Rename one of them."
                # Two groups of the same name are merged, so nothing is lost.
                tell = report.warn if model is InputGroup else report.error
                tell(Code.DUPLICATE_NAME, entry.place.child("name"), message, hint)
            elif name:
                seen[name] = entry
