"""Checks of components."""

from collections.abc import Mapping

from exclave.appconfig.checks.common import (
    check_exists,
    check_one_of,
    check_role_rules,
    check_unique,
    names_of,
)
from exclave.appconfig.checks.docker_builds import check_docker_build
from exclave.appconfig.checks.inert_keys import check_inert
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Place, Report, list_words
from exclave.appconfig.model.app import App, Entry
from exclave.appconfig.model.kinds.components import (
    BUILT_IN_CHECKS,
    Component,
    Health,
    WatchedComponent,
)
from exclave.appconfig.model.kinds.container_image import AzureAcr, ContainerImage, ImageSource
from exclave.appconfig.model.kinds.helm_chart import HelmChart
from exclave.appconfig.model.kinds.kubernetes_manifest import KubernetesManifest
from exclave.appconfig.model.kinds.other_components import DockerBuild
from exclave.appconfig.model.kinds.shared import Repos

_REPOS = ("public_repo", "connected_repo")
_IMAGES = ("public", "aws_ecr", "gcp_gar", "azure_acr")


def check(app: App, report: Report) -> None:
    """Check all components."""
    contexts = names_of(app.kubernetes_contexts)
    for entry in app.entries_of(Component):
        value, place = entry.value, entry.place
        if not isinstance(value, Component):
            continue
        if value.DEPRECATED:
            message = f"the type `{value.type}` is deprecated"
            report.warn(Code.DEPRECATED, place.child("type"), message, value.DEPRECATED)
        if value.UNSUPPORTED:
            message = f"components of type `{value.type}` cannot be deployed"
            report.warn(Code.UNSUPPORTED_TYPE, place.child("type"), message, value.UNSUPPORTED)
        at = place.child("kubernetes_context")
        check_exists(report, Code.UNKNOWN_CONTEXT, at, value.kubernetes_context, contexts)
        if value.default_enabled and not value.toggleable:
            message = "`default_enabled` has no effect without `toggleable`"
            report.warn(Code.NEEDLESS_KEY, place.child("default_enabled"), message)
        check_role_rules(app, report, entry)
        check_inert(report, place, value)
        _check_type(report, entry, value)
        if isinstance(value, WatchedComponent) and value.health is not None:
            _check_health(report, entry, value.health)


def check_types(app: App, before: Mapping[str, str], report: Report) -> None:
    """Report components whose type changed: what is deployed cannot be converted."""
    for entry in app.entries_of(Component):
        kind = entry.value.type if isinstance(entry.value, Component) else ""
        old = before.get(entry.name, kind)
        if kind and old != kind:
            message = f"`{entry.name}` was a {old} before, and cannot become a {kind}"
            hint = "Give the new component another name; the old one is then torn down."
            report.error(Code.TYPE_CHANGED, entry.place.child("type").value, message, hint)


def _check_type(report: Report, entry: Entry, value: Component) -> None:
    match value:
        case HelmChart():
            check_one_of(report, entry.place, value, (*_REPOS, "helm_repo"))
            for index, file in enumerate(value.values_file):
                at = entry.place.child("values_file", index)
                check_one_of(report, at, file, ("contents", "path", "source"), needed=False)
            if value.skip_crds and value.crds == "upgrade":
                message = "`skip_crds` leaves out what `crds` would upgrade"
                report.error(Code.CONFLICT, entry.place.child("crds"), message)
        case KubernetesManifest():
            _check_manifest(report, entry, value)
        case ContainerImage():
            _check_image(report, entry.place, value)
        case DockerBuild():
            check_one_of(report, entry.place, value, _REPOS)
            check_docker_build(report, entry.place, value)
        case Repos():
            check_one_of(report, entry.place, value, _REPOS)
        case _:
            pass


def _check_manifest(report: Report, entry: Entry, value: KubernetesManifest) -> None:
    written = value.manifest or value.kustomize or entry.place.has("manifest")
    check_one_of(report, entry.place, value, ("manifest", "kustomize"), needed=not written)
    has_repo = value.public_repo or value.connected_repo
    if value.kustomize is not None:
        check_one_of(report, entry.place, value, _REPOS)
    elif has_repo:
        key = "public_repo" if value.public_repo else "connected_repo"
        message = f"`{key}` goes with `kustomize`, not with `manifest`"
        report.error(Code.CONFLICT, entry.place.child(key), message, "Remove one of the two.")


def _check_image(report: Report, place: Place, value: ContainerImage) -> None:
    check_one_of(report, place, value, _IMAGES)
    for key in _IMAGES:
        source: ImageSource | None = getattr(value, key)
        if source is None:
            continue
        pinned = "@" in source.image_url or ":" in source.image_url.rpartition("/")[2]
        keys = ("tag", "update_policy")
        check_one_of(report, place.child(key), source, keys, needed=not pinned)
        if isinstance(source, AzureAcr):
            _check_credentials(report, place.child(key), source)


def _check_credentials(report: Report, place: Place, source: AzureAcr) -> None:
    secret = source.client_secret_name or source.client_certificate_name
    given = [bool(credential) for credential in (source.tenant_id, source.client_id, secret)]
    if any(given) and not all(given):
        message = "the credentials are incomplete"
        hint = "Give tenant_id, client_id and client_secret_name (or a certificate), or none."
        report.error(Code.CONFLICT, place, message, hint)


def _check_health(report: Report, entry: Entry, health: Health) -> None:
    check_unique(report, entry.place.child("health", "probes"), health.probes)
    for index, probe in enumerate(health.probes):
        place = entry.place.child("health", "probes", index)
        wanted, other = ("command", "url") if probe.type == "exec" else ("url", "command")
        if probe.type and not getattr(probe, wanted):
            message = f"`{wanted}` is missing, which a probe of type {probe.type} needs"
            report.error(Code.MISSING_KEY, place, message)
        if probe.type and getattr(probe, other):
            message = f"`{other}` has no effect on a probe of type {probe.type}"
            report.warn(Code.NEEDLESS_KEY, place.child(other), message)
    known = {*names_of(health.probes), *BUILT_IN_CHECKS}
    unknown = [name for name in health.required_checks if name not in known]
    if unknown:
        message = f"there is no check {list_words(unknown)}"
        place = entry.place.child("health", "required_checks")
        report.error(Code.CONFLICT, place, message, f"There are {list_words(sorted(known))}.")
