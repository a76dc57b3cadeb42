"""Rendering and reading of the texts in a definition."""

from collections.abc import Mapping

from exclave.appconfig.model.formats import parse_duration
from exclave.domain.jobs import Reason
from exclave.jobspec.errors import NotReady
from exclave.jobspec.facts import Render


def render_map(render: Render, texts: Mapping[str, str], where: str) -> dict[str, str]:
    """Return a table with its values rendered."""
    return {name: render(text, f"{where}.{name}") for name, text in texts.items()}


def read_timeout(text: str) -> float:
    """Return a duration in seconds."""
    seconds = parse_duration(text)
    if not seconds:
        message = f"`{text}` is no duration"
        raise NotReady(Reason.RENDER_FAILED, message, hint="Write one like `30m` or `90s`.")
    return seconds
