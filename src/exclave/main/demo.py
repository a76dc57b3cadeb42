"""The demo: a workflow with parallel steps, an approval and live logs, as a user would run it."""

import asyncio
import os
import sys
from importlib import resources

import click

from exclave.base.errors import Problem
from exclave.control.workflows import approve_step, list_workflows, watch_workflow
from exclave.domain.workflows import WorkflowId
from exclave.main.dev import INSTALL, Dev
from exclave.wire.workflows import (
    Approve,
    StepKind,
    StepState,
    WorkflowState,
    WorkflowSummary,
)

_READING_S = 1.0
"""A moment for whoever watches to read what is to be approved."""


async def run_demo(dev: Dev) -> bool:
    """Run the demo workflow on the install's runner; tell whether it succeeded."""
    with resources.as_file(resources.files("exclave.main") / "demo.toml") as file:
        words = ["workflows", "run", str(file), "--install", INSTALL, "--watch"]
        click.echo(f"$ exclave {' '.join(words[:2])} demo.toml {' '.join(words[3:])}", err=True)
        seen = {summary.id for summary in await _list(dev)}
        watching = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "exclave", *words, stdin=asyncio.subprocess.DEVNULL,
            env={**os.environ, "EXCLAVE_URL": dev.running.control_url, "EXCLAVE_TOKEN": dev.token},
        )  # fmt: skip
        approving = asyncio.create_task(_approve(dev, seen))
        try:
            await watching.wait()
        finally:
            approving.cancel()
            if watching.returncode is None:
                watching.terminate()
    return any(
        summary.id not in seen and summary.state is WorkflowState.SUCCEEDED
        for summary in await _list(dev)
    )


async def _approve(dev: Dev, seen: set[str]) -> None:
    """Approve the gate once it is open, as a person would."""
    workflow = await _find_new(dev, seen)
    async for shown in watch_workflow(dev.running.deps, dev.user, workflow):
        for step in shown.steps:
            if step.kind is StepKind.GATE and step.state is StepState.ACTIVE:
                await asyncio.sleep(_READING_S)
                answer = Approve(digest=step.digest, comment="approved by the demo")
                try:
                    await approve_step(dev.running.deps, dev.user, workflow, step.name, answer)
                except Problem as problem:
                    click.echo(f"not approved: {problem}", err=True)
                return


async def _find_new(dev: Dev, seen: set[str]) -> WorkflowId:
    while True:
        for summary in await _list(dev):
            if summary.id not in seen:
                return WorkflowId(summary.id)
        await asyncio.sleep(0.05)


async def _list(dev: Dev) -> list[WorkflowSummary]:
    page = await list_workflows(
        dev.running.deps, dev.user, cursor="", limit=50, queue=dev.install, state=None
    )
    return page.items
