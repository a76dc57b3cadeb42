"""Screens of a watched workflow: plain lines, or lines above a live graph on a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.text import Text

from exclave.cli.deps import Session
from exclave.cli.output import show_duration
from exclave.cli.terminal import clean, clean_line, join
from exclave.cli.workflows.graph import count_steps, draw_graph, draw_step
from exclave.wire.workflows import StepState, WorkflowReply

_ROOM = 6
"""Lines of the terminal that the graph leaves to the log."""


class Screen(Protocol):
    """Shows lines and the changing workflow."""

    def print_line(self, value: object, text: str) -> None:
        """Print a line of JSON or of text."""
        ...

    def say(self, text: str) -> None:
        """Print a message."""
        ...

    def update(self, workflow: WorkflowReply) -> None:
        """Set the workflow to show."""
        ...


class PlainScreen:
    """Lines only: for pipes, files and programs."""

    def __init__(self, session: Session) -> None:
        self._out = session.out

    def print_line(self, value: object, text: str) -> None:
        """Print a line."""
        self._out.stream(value, text)

    def say(self, text: str) -> None:
        """Print a message on stderr."""
        self._out.say(text)

    def update(self, workflow: WorkflowReply) -> None:
        """Do nothing: there is no graph."""


class LiveScreen:
    """Lines scroll by above a graph that shows where each step stands."""

    def __init__(self, session: Session, console: Console) -> None:
        self._session = session
        self._console = console
        self._newest: WorkflowReply | None = None

    def print_line(self, value: object, text: str) -> None:  # noqa: ARG002 - shape of the Protocol
        """Print a line above the graph."""
        self._console.print(_render(text), soft_wrap=True)

    def say(self, text: str) -> None:
        """Print a message above the graph."""
        self._console.print(_render(text), soft_wrap=True)

    def update(self, workflow: WorkflowReply) -> None:
        """Set the workflow that the next frame shows."""
        self._newest = workflow

    def draw(self) -> Text:
        """Return the graph, or only its open and failed steps if it is higher than the terminal."""
        workflow = self._newest
        if workflow is None:
            return Text("")
        now, paint = self._session.deps.clock.now(), self._session.out.paint
        age = show_duration(((workflow.finished_at or now) - workflow.created_at).total_seconds())
        state = paint(workflow.state, workflow.state)
        title = clean_line(f"{workflow.name}  ")
        lines = [title + state + f" · {count_steps(workflow)} · {age}"]
        if len(workflow.steps) + _ROOM <= self._console.height:
            lines += draw_graph(workflow, now, paint)
        else:
            hidden = {StepState.PENDING, StepState.SUCCEEDED, StepState.SKIPPED}
            shown = [step for step in workflow.steps if step.state not in hidden]
            most = max(1, self._console.height - _ROOM)
            lines += [draw_step(step, now, paint) for step in shown[:most]]
        return _render(join(lines), no_wrap=True)


@contextmanager
def open_screen(session: Session) -> Iterator[Screen]:
    """Yield the live screen on a terminal, else the plain one."""
    if session.out.json_mode or not session.out.terminal:
        yield PlainScreen(session)
        return
    console = Console(no_color=not session.out.colour, highlight=False)
    screen = LiveScreen(session, console)
    with Live(get_renderable=screen.draw, console=console, refresh_per_second=4):
        yield screen


def _render(text: str, *, no_wrap: bool = False) -> Text:
    """Return text for Rich without Rich's markup, which tenants could write into names."""
    return Text.from_ansi(clean(text), no_wrap=no_wrap, overflow="ellipsis" if no_wrap else None)
