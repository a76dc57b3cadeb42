"""Keys that this version reads and does nothing with, and what does it instead."""

from collections.abc import Mapping
from typing import Final

from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Place, Report
from exclave.appconfig.model.fields import Table
from exclave.appconfig.model.kinds.components import Component
from exclave.appconfig.model.kinds.container_image import AzureAcr, ContainerImage, GcpGar
from exclave.appconfig.model.kinds.other_components import DockerBuild, Job
from exclave.appconfig.model.kinds.runner import Runner

_ADDRESS: Final = "The address of the image says it."
_IDENTITY: Final = "The build runner logs in with the identity of its machine."
_NO_CLUSTER: Final = "An image is copied to a registry; it goes to no cluster."

INERT: Final[Mapping[type[Table], Mapping[str, str]]] = {
    ContainerImage: {"kubernetes_context": _NO_CLUSTER},
    DockerBuild: {"kubernetes_context": _NO_CLUSTER},
    Runner: {
        "helm_driver": "Releases are kept in Secrets of the cluster.",
        "init_script_url": "The machine of a Stack has its own script, which nothing replaces.",
        "env_vars": "Write env_vars into the components and actions that need them.",
        "phone_home_script_url": "The runner reports the outputs of the Stack itself.",
        "runner_api_url": "The control plane knows the address of its Runner API.",
        "public_api_url": "The runner needs the Runner API only.",
    },
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
    check_inert_keys(report, place, value)
    if isinstance(value, ContainerImage):
        for key, source in (("gcp_gar", value.gcp_gar), ("azure_acr", value.azure_acr)):
            if source is not None:
                check_inert_keys(report, place.child(key), source)


def check_inert_keys(report: Report, place: Place, value: Table) -> None:
    """Warn about the keys of a table that have no effect."""
    for key, hint in INERT.get(type(value), {}).items():
        if place.has(key):
            message = f"`{key}` has no effect in this version"
            report.warn(Code.NOT_APPLIED, place.child(key), message, hint)
