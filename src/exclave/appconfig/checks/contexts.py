"""Checks of Kubernetes contexts."""

from exclave.appconfig.checks.common import check_exists
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Report
from exclave.appconfig.model.app import App
from exclave.appconfig.model.kinds.kubernetes_contexts import KubernetesContext

_MAKERS = ("terraform_module", "pulumi")


def check(app: App, report: Report) -> None:
    """Check that each context belongs to a component that can create a cluster."""
    types = {component.name: component.type for component in app.components}
    for entry in app.entries_of(KubernetesContext):
        context = entry.value
        if not isinstance(context, KubernetesContext):
            continue
        place = entry.place.child("component")
        check_exists(report, Code.UNKNOWN_COMPONENT, place, context.component, types)
        kind = types.get(context.component, "")
        if kind and kind not in _MAKERS:
            message = f"`{context.component}` is a {kind}, which makes no cluster"
            hint = "Name a terraform_module or pulumi component with an output `cluster`."
            report.error(Code.CONFLICT, place, message, hint)
