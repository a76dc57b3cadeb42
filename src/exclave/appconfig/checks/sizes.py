"""Checks of sizes: a text that is too large for a job is reported at sync, not in an install."""

import re
from collections.abc import Mapping

from exclave.appconfig.checks.common import is_template
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Place, Report
from exclave.appconfig.model.app import App
from exclave.appconfig.model.kinds.actions import Action, ActionStep
from exclave.appconfig.model.kinds.policies import Policy
from exclave.appconfig.model.kinds.runbooks import Runbook, RunbookStep
from exclave.appconfig.model.kinds.sandbox import Sandbox
from exclave.appconfig.model.kinds.secrets import Secret
from exclave.appconfig.model.kinds.terraform_module import TerraformModule
from exclave.base import job_limits

_ENV_NAME = re.compile(job_limits.ENV_NAME)


def check(app: App, report: Report) -> None:
    """Check texts that become part of jobs; what templates add is known only in an install."""
    for entry in app.entries:
        place = entry.place
        match entry.value:
            case Action() as value:
                for index, step in enumerate(value.steps):
                    _check_step(report, place.child("steps", index), step)
            case Runbook() as value:
                for index, own in enumerate(value.steps):
                    _check_step(report, place.child("steps", index), own)
            case Sandbox() | TerraformModule() as value:
                _check_env(report, place, value.env_vars)
            case Secret() as value:
                _check_text(report, place.child("default"), value.default, job_limits.VALUE)
            case Policy() as value:
                _check_text(report, place.child("contents"), value.contents, job_limits.SCRIPT)
            case _:
                pass


def _check_step(report: Report, place: Place, step: ActionStep | RunbookStep) -> None:
    _check_env(report, place, step.env_vars)
    _check_text(report, place.child("inline_contents"), step.inline_contents, job_limits.SCRIPT)


def _check_env(report: Report, place: Place, env: Mapping[str, str]) -> None:
    for name, value in env.items():
        at = place.child("env_vars", name)
        if not is_template(name) and not _ENV_NAME.fullmatch(name):
            hint = "Use letters, digits and `_`, at most 128, and no digit at the beginning."
            report.error(Code.BAD_NAME, at, f"`{name[:80]}` is not a name of a variable", hint)
        _check_text(report, at, value, job_limits.VALUE)


def _check_text(report: Report, place: Place, text: str | None, most: int) -> None:
    if text and not is_template(text) and len(text) > most:
        message = f"`{place.at[-1]}` has {len(text)} characters, and a job holds {most}"
        report.error(Code.BAD_FORMAT, place, message, "Put large texts into files of the source.")
