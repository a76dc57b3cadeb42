"""Keys that this version reads and does nothing with, and what does it instead."""

from collections.abc import Mapping
from typing import Final

from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Place, Report
from exclave.appconfig.model.fields import Table
from exclave.appconfig.model.kinds.components import Component
from exclave.appconfig.model.kinds.container_image import AzureAcr, ContainerImage, GcpGar
from exclave.appconfig.model.kinds.other_components import DockerBuild, Job

_ADDRESS: Final = "The address of the image says it."
_IDENTITY: Final = "The build runner logs in with the identity of its machine."
_NO_CLUSTER: Final = "An image is copied to a registry; it goes to no cluster."

INERT: Final[Mapping[type[Table], Mapping[str, str]]] = {
    ContainerImage: {"kubernetes_context": _NO_CLUSTER},
    DockerBuild: {"kubernetes_context": _NO_CLUSTER},
    Job: {"build_timeout": "A job is not built; `deploy_timeout` limits it."},
    GcpGar: {"gcp_project_id": _ADDRESS, "workload_identity_provider": _IDENTITY},
    AzureAcr: {
        "registry_url": _ADDRESS,
        "tenant_id": _IDENTITY,
        "client_secret_name": _IDENTITY,
        "client_certificate_name": _IDENTITY,
    },
}
"""Hints by table and key."""


def check_inert(report: Report, place: Place, value: Component) -> None:
    """Warn about the keys of a component, and of its image source, that have no effect."""
    _check(report, place, value)
    if isinstance(value, ContainerImage):
        for key, source in (("gcp_gar", value.gcp_gar), ("azure_acr", value.azure_acr)):
            if source is not None:
                _check(report, place.child(key), source)


def _check(report: Report, place: Place, value: Table) -> None:
    for key, hint in INERT.get(type(value), {}).items():
        if place.has(key):
            message = f"`{key}` has no effect in this version"
            report.warn(Code.NOT_APPLIED, place.child(key), message, hint)
