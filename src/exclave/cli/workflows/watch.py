"""Watching of a workflow: its changes and the logs of its jobs as they happen."""

import asyncio
from datetime import UTC, datetime

from exclave.base.errors import Problem
from exclave.cli.deps import Session
from exclave.cli.errors import FAILED, OK
from exclave.cli.logs import show_record
from exclave.cli.output import show_duration
from exclave.cli.terminal import Styled, clean_line, join
from exclave.cli.workflows.graph import ICONS, describe_state
from exclave.cli.workflows.screens import Screen, open_screen
from exclave.wire.jobs import Reason
from exclave.wire.workflows import StepKind, StepReply, StepState, WorkflowReply, WorkflowState

_DRAIN_S = 10.0
"""How long the last lines may take to arrive after the workflow has ended."""


async def watch_workflow(
    session: Session, workflow_id: str, begun: WorkflowReply | None = None
) -> int:
    """Show a workflow until it ends; return the exit code."""
    try:
        with open_screen(session) as screen:
            last = await _Watcher(session, screen, begun).run(workflow_id)
    except asyncio.CancelledError:
        session.out.say(
            f"\nStopped watching; the workflow continues."
            f"\n  watch it again:  exclave workflows watch {workflow_id}"
            f"\n  cancel it:       exclave workflows cancel {workflow_id}"
        )
        raise
    _print_end(session, last)
    return OK if last.state is WorkflowState.SUCCEEDED else FAILED


class _Watcher:
    def __init__(self, session: Session, screen: Screen, begun: WorkflowReply | None) -> None:
        self._session = session
        self._screen = screen
        self._begun = begun
        self._marks: dict[str, str] = {}
        self._followed: set[str] = set()
        self._advised: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._width = 0

    async def run(self, workflow_id: str) -> WorkflowReply:
        """Follow the workflow to its end, then wait briefly for the rest of the logs."""
        last = self._begun
        if last is not None:
            self._show_changes(last)
        following = self._session.client.workflows.follow(workflow_id, self._print_trouble)
        try:
            async for last in following:
                self._show_changes(last)
            await self._drain()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if last is None:
            raise RuntimeError("the stream of a workflow ended before it began")
        self._screen.print_line({"event": "end", "workflow": last}, self._write_end(last))
        return last

    def _show_changes(self, workflow: WorkflowReply) -> None:
        """Print what is new, and follow the logs of jobs that have started.

        Steps that had ended before are listed, but their logs are not printed.
        """
        is_first = not self._marks
        self._width = max(len(step.name) for step in workflow.steps)
        for step in workflow.steps:
            self._print_step(workflow, step)
            is_old = is_first and step.state.is_over
            if step.job_id and step.job_id not in self._followed:
                self._followed.add(step.job_id)
                if not is_old:
                    following = self._follow_log(step.name, step.job_id)
                    self._tasks.append(asyncio.create_task(following))
        self._screen.update(workflow)

    def _print_step(self, workflow: WorkflowReply, step: StepReply) -> None:
        words = describe_state(step)
        mark = f"{step.attempt} {words}"
        if self._marks.get(step.name, "0 pending") != mark and step.state is not StepState.PENDING:
            at = step.finished_at or self._session.deps.clock.now()
            line = words.partition("\n")[0]  # the log has the rest, and the end repeats it
            text = self._session.out.paint(step.state, f"{ICONS[step.state]} {line}")
            value = {"event": "step", "workflow_id": workflow.id, **step.model_dump(mode="json")}
            self._screen.print_line(value, self._write(at, step.name, text))
            if step.kind is StepKind.GATE and step.state is StepState.ACTIVE:
                self._print_gate(workflow, step)
        self._print_blocker(step)
        self._marks[step.name] = mark

    def _print_gate(self, workflow: WorkflowReply, step: StepReply) -> None:
        if not self._session.out.json_mode:
            command = f"exclave workflows approve {workflow.id} {step.name}"
            self._screen.say(f"To approve: {command} --digest {step.digest}")

    def _print_blocker(self, step: StepReply) -> None:
        """Print once what blocks a step, which may not have started yet."""
        if step.blocked_by is None or step.blocked_by.hint in self._advised:
            return
        self._advised.add(step.blocked_by.hint)
        if not self._session.out.json_mode:
            self._screen.say(f"{step.name} waits: {step.blocked_by.message}")
            self._screen.say(f"hint: {step.blocked_by.hint}")

    def _print_trouble(self, problem: Problem) -> None:
        self._screen.say(f"warning: {problem.message}; trying again")

    async def _follow_log(self, name: str, job_id: str) -> None:
        try:
            async for record in self._session.client.logs.follow(job_id):
                at = datetime.fromtimestamp(record.t_ms / 1000, UTC)
                value = {"event": "log", "step": name, "job_id": job_id, "record": record}
                text = "| " + show_record(self._session, record)
                self._screen.print_line(value, self._write(at, name, text))
        except Problem as problem:
            self._screen.say(f"warning: no log of `{name}`: {problem.message}")

    async def _drain(self) -> None:
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=_DRAIN_S)
        if late:
            self._screen.say("Some logs are still arriving: see `exclave logs tail JOB`.")

    def _write(self, at: datetime, name: str, text: str) -> Styled:
        return clean_line(f"{at.astimezone(UTC):%H:%M:%S} {name:<{self._width}} ") + text

    def _write_end(self, workflow: WorkflowReply) -> Styled:
        end = workflow.finished_at or self._session.deps.clock.now()
        took = show_duration((end - workflow.created_at).total_seconds())
        state = self._session.out.paint(workflow.state, workflow.state)
        head = clean_line(f"{end.astimezone(UTC):%H:%M:%S} workflow {workflow.name}")
        return join([head, state, f"in {took}"], " ")


def _print_end(session: Session, workflow: WorkflowReply) -> None:
    if session.out.json_mode or workflow.state is not WorkflowState.FAILED:
        return
    broken = [step for step in workflow.steps if step.state in {StepState.FAILED, StepState.LOST}]
    for step in broken:
        session.out.say(f"\nStep `{step.name}` {describe_state(step)}")
    if broken:
        session.out.say(f"\nhint: {_advise(workflow, broken[0])}")


def _advise(workflow: WorkflowReply, step: StepReply) -> str:
    """Return a hint about what to do after a step failed."""
    target = f"{workflow.id} {step.name}"
    again = f"`exclave workflows retry {target}` tries it again"
    if step.state is StepState.LOST:
        return (
            "it may be partly done. See what it left behind:"
            f" exclave installs orphans {workflow.queue_id}. Then release its lanes:"
            f" exclave installs release-lane {workflow.queue_id} {' '.join(step.lanes[:1])}"
            f" --reason …. After that {again}."
        )
    if step.reason == Reason.POLICY_DENIED:
        return (
            "the plan breaks a policy of the app. Change the app or the policy, then `exclave apps"
            f" sync` and `exclave installs upgrade --deploy`; {again} if something else changed."
        )
    return f"{again}, `exclave workflows skip {target} --reason …` continues without it."
