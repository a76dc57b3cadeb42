"""`exclave runner`: run a runner, diagnose it, verify its audit trail."""

import asyncio
from dataclasses import asdict
from pathlib import Path

import click

from exclave.base.clock import SystemClock
from exclave.base.errors import Conflict
from exclave.base.ids import SystemRandomness
from exclave.main.cluster_access import make_connector
from exclave.main.commands.process import (
    answer,
    begin_logs,
    environment,
    json_option,
    run_async,
)
from exclave.main.environment import read_settings
from exclave.main.runner import audit_file, build_config, find_path, run_runner
from exclave.main.settings import RunnerSettings
from exclave.runner.audit import verify_audit
from exclave.runner.doctor.doctor import diagnose


@click.group(invoke_without_command=True)
@click.option("--data", type=click.Path(path_type=Path), help="Data folder of the runner.")
@click.option("--url", help="URL of the Runner API.")
@click.option("--enrolment", help="One-time enrolment token; prefer EXCLAVE_ENROLMENT.")
@click.option("--name", help="Name shown in the control plane.")
@click.option(
    "--boot",
    type=click.Path(path_type=Path),
    help="File of the boot script of a machine in a cloud: enrol by attestation.",
)
@click.option("--capacity", type=int, help="Maximum number of jobs that run at once.")
@click.pass_context
def group(
    context: click.Context,
    data: Path | None,
    url: str | None,
    enrolment: str | None,
    name: str | None,
    boot: Path | None,
    capacity: int | None,
) -> None:
    """Run a runner: it connects to the control plane, gets jobs and reports results."""
    settings = read_settings(
        RunnerSettings,
        environment(),
        runner_data=data,
        runner_url=url,
        enrolment=enrolment,
        runner_name=name,
        boot=boot,
        capacity=capacity,
    )
    context.obj = settings
    if context.invoked_subcommand is None:
        begin_logs(settings.log_level)
        run_async(run_runner(settings))


@group.command()
@json_option
@click.pass_obj
def doctor(settings: RunnerSettings, *, json_mode: bool) -> None:
    """Check every hop between this machine and the control plane, and report which one fails."""
    config = build_config(settings)
    connector = make_connector(config, find_path(settings), lambda _: None)
    findings = asyncio.run(diagnose(config, connector, SystemClock(), SystemRandomness()))
    lines = []
    for finding in findings:
        fix = f"\n        {finding.fix}" if finding.fix else ""
        lines.append(f"{finding.state:4}  {finding.name}: {finding.message}{fix}")
    failed = any(finding.state == "fail" for finding in findings)
    value = {"ok": not failed, "findings": [asdict(finding) for finding in findings]}
    answer(value, "\n".join(lines), json_mode=json_mode)
    if failed:
        click.get_current_context().exit(1)


@group.group()
def audit() -> None:
    """Check the runner's own record of what it was asked to do."""


@audit.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@json_option
@click.pass_obj
def verify(settings: RunnerSettings, file: Path | None, *, json_mode: bool) -> None:
    """Verify the hash chain; reports a changed, missing or reordered line."""
    path = file or audit_file(settings.runner_data)
    if not path.is_file():
        raise Conflict(f"there is no audit file at {path}", hint="Pass the file, or use --data.")
    report = verify_audit(path)
    text = f"{path}: {report.lines} entries, the hash chain is valid"
    if not report.ok:
        text = f"{path}: line {report.bad_line}: {report.problem}"
    answer({"file": str(path), **asdict(report)}, text, json_mode=json_mode)
    if not report.ok:
        click.get_current_context().exit(1)
