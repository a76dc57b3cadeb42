"""The demo: a workflow with parallel steps, an approval and live logs, shown as a user sees it."""

import asyncio
import os
import sys
import tomllib
from importlib import resources

import click

from exclave.base.errors import Problem
from exclave.control.workflows import approve_step, create_workflow, show_workflow, watch_workflow
from exclave.domain.workflows import WorkflowId
from exclave.main.dev import Dev
from exclave.wire.workflows import Approve, NewWorkflow, StepKind, StepState, WorkflowState

_READING_S = 1.0
"""A moment for whoever watches to read what is to be approved."""


async def run_demo(dev: Dev) -> bool:
    """Run the demo workflow on the install's runner; tell whether it succeeded."""
    text = resources.files("exclave.main").joinpath("demo.toml").read_text()
    wish = NewWorkflow.model_validate({**tomllib.loads(text), "queue_id": dev.install})
    begun = await create_workflow(dev.running.deps, dev.user, wish)
    workflow = WorkflowId(begun.id)
    click.echo(f"$ exclave workflows watch {workflow}", err=True)
    watching = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "exclave", "workflows", "watch", workflow,
        env={**os.environ, "EXCLAVE_URL": dev.running.control_url, "EXCLAVE_TOKEN": dev.token},
        stdin=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    approving = asyncio.create_task(_approve(dev, workflow))
    try:
        await watching.wait()
    finally:
        approving.cancel()
    ended = await show_workflow(dev.running.deps, dev.user, workflow)
    return ended.state is WorkflowState.SUCCEEDED


async def _approve(dev: Dev, workflow: WorkflowId) -> None:
    """Approve the gate once it is open, as a person would."""
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
