"""Checks of secrets."""

import re

from exclave.appconfig.checks.common import is_template
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Place, Report
from exclave.appconfig.model.app import App
from exclave.appconfig.model.kinds.secrets import Secret

_LABEL = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_KEY = re.compile(r"[A-Za-z0-9._-]{1,253}")


def check(app: App, report: Report) -> None:
    """Check the secrets, and that no two of them write the same Kubernetes Secret."""
    taken: dict[tuple[str, str, str], str] = {}
    for entry in app.entries_of(Secret):
        secret, place = entry.value, entry.place
        if not isinstance(secret, Secret):
            continue
        _check_origin(report, place, secret)
        _check_sync(report, place, secret)
        _check_restart(report, place, secret)
        for target, where in _list_targets(secret, place):
            if target in taken:
                message = f"`{secret.name}` writes the same Kubernetes Secret as `{taken[target]}`"
                hint = f"Both write the key `{target[2]}` of `{target[0]}/{target[1]}`."
                report.error(Code.CONFLICT, where, message, hint)
            taken.setdefault(target, secret.name)


def _check_origin(report: Report, place: Place, secret: Secret) -> None:
    ways = {
        "required": secret.required,
        "auto_generate": secret.auto_generate,
        "default": bool(secret.default),
    }
    given = [key for key, on in ways.items() if on]
    if len(given) > 1:
        message = f"`{given[0]}` and `{given[1]}` exclude each other"
        hint = "A secret is given by the customer, generated, or has a default."
        report.error(Code.CONFLICT, place.child(given[1]), message, hint)


def _check_sync(report: Report, place: Place, secret: Secret) -> None:
    keys = ("kubernetes_secret_namespace", "kubernetes_secret_name")
    if secret.kubernetes_sync and not secret.kubernetes_sync_targets:
        for key in keys:
            if not getattr(secret, key):
                message = f"`{key}` is missing, which kubernetes_sync needs"
                report.error(Code.MISSING_KEY, place, message, f'Example: {key} = "app"')
    for key in keys:
        _check_kubernetes_name(report, place.child(key), getattr(secret, key))
    for index, target in enumerate(secret.kubernetes_sync_targets):
        at = place.child("kubernetes_sync_targets", index)
        _check_kubernetes_name(report, at.child("name"), target.name)
        for number, namespace in enumerate(target.namespaces):
            _check_kubernetes_name(report, at.child("namespaces", number), namespace)
        if target.key and not is_template(target.key) and not _KEY.fullmatch(target.key):
            message = f"`{target.key}` is not a key of a Kubernetes Secret"
            report.error(Code.BAD_NAME, at.child("key"), message, "Use letters, digits, `-_.`.")


def _check_restart(report: Report, place: Place, secret: Secret) -> None:
    if secret.restart and not (secret.kubernetes_sync or secret.kubernetes_sync_targets):
        message = "`restart` has no effect: the secret is not copied into the cluster"
        hint = "Add kubernetes_sync_targets, or remove the key."
        report.error(Code.CONFLICT, place.child("restart"), message, hint)


def _check_kubernetes_name(report: Report, place: Place, name: str) -> None:
    if name and not is_template(name) and not _LABEL.fullmatch(name):
        message = f"`{name}` is not a Kubernetes name"
        hint = "Use a-z, 0-9 and `-`, with a letter or digit at both ends."
        report.error(Code.BAD_NAME, place, message, hint)


def _list_targets(secret: Secret, place: Place) -> list[tuple[tuple[str, str, str], Place]]:
    if secret.kubernetes_sync_targets:
        return [
            ((namespace, target.name, target.key), place.child("kubernetes_sync_targets", index))
            for index, target in enumerate(secret.kubernetes_sync_targets)
            for namespace in target.namespaces
        ]
    if not (secret.kubernetes_sync and secret.kubernetes_secret_name):
        return []
    target = (secret.kubernetes_secret_namespace, secret.kubernetes_secret_name, "value")
    return [(target, place.child("kubernetes_secret_name"))]
