"""Expressions of Terraform in the module: which resources and variables a text refers to."""

from typing import Final

from exclave.stacks.parameter_kinds import ParameterKind

PROJECT: Final = "${var.project_id}"
REGION: Final = "${var.region}"
ONLY_NEW: Final = "${local.new_network ? 1 : 0}"
ONLY_FULL: Final = '${var.runner_mode == "full" ? 1 : 0}'
ONLY_PLAN: Final = '${var.runner_mode == "plan-only" ? 1 : 0}'
NETWORK: Final = "${local.network}"


def write_account(name: str, attribute: str = "email") -> str:
    """Return an attribute of a service account of the Stack."""
    return f"${{google_service_account.{name}.{attribute}}}"


def write_member(name: str) -> str:
    """Return a service account of the Stack as bindings name it."""
    return f"serviceAccount:{write_account(name)}"


def write_secret(name: str) -> str:
    """Return the reference of a secret: `projects/P/secrets/NAME`."""
    return f"${{google_secret_manager_secret.{name}.id}}"


def write_text(variable: str, kind: ParameterKind) -> str:
    """Return a variable as an expression that is a text."""
    match kind:
        case ParameterKind.LIST:
            return f'join(",", var.{variable})'
        case ParameterKind.FLAG | ParameterKind.NUMBER:
            return f"tostring(var.{variable})"
        case ParameterKind.TEXT:
            return f"var.{variable}"


def write_last(path: str) -> str:
    """Return the expression for the last part of a path, such as the name in a link."""
    return f'element(split("/", {path}), length(split("/", {path})) - 1)'


def write_new(expression: str, otherwise: str) -> str:
    """Return what is there in a new network, and otherwise in one of the customer's."""
    return f"${{local.new_network ? one({expression}) : {otherwise}}}"
