"""How a difference between two versions of an app looks for a person."""

from collections.abc import Iterator

import click

from exclave.cli.errors import clean
from exclave.wire.apps import ConfigDiffReply, ConfigFieldChange, ConfigPartChange

_SIGNS = {"added": ("+", "green"), "changed": ("~", "yellow"), "removed": ("-", "red")}
_FILES = "files"
_SHOWN_LINES = 60


def write_diff(diff: ConfigDiffReply, *, colour: bool) -> str:
    """Write what differs, what is built and which installs would see it; empty if nothing does."""
    lines = [line for part in diff.parts for line in _write_part(part, colour=colour)]
    if diff.builds:
        lines += ["", f"Builds: {clean(', '.join(diff.builds))}"]
    if diff.installs:
        lines += ["", "Installs that would see a change once they are upgraded:"]
        lines += [
            f"  {each.name} (version {each.version}): {clean(', '.join(each.parts))}"
            for each in diff.installs
        ]
    if diff.more_installs:
        lines.append(f"  and {diff.more_installs} more")
    return "\n".join([*lines, ""]) if lines else ""


def _write_part(part: ConfigPartChange, *, colour: bool) -> Iterator[str]:
    sign, shade = _SIGNS.get(part.change, ("?", "cyan"))
    title = part.section.replace("_", " ")
    yield _paint(clean(f"{sign} {title} {part.name}".rstrip()), shade, colour=colour)
    for field in part.fields:
        yield from _write_field(field, colour=colour)


def _write_field(field: ConfigFieldChange, *, colour: bool) -> Iterator[str]:
    if field.path == _FILES:
        yield "    files of its source folder changed"
    elif field.diff:
        yield f"    {clean(field.path)}:"
        lines = field.diff.split("\n")
        for line in lines[:_SHOWN_LINES]:
            shade = {"+": "green", "-": "red"}.get(line[:1])
            yield "      " + _paint(clean(line), shade, colour=colour)
        if len(lines) > _SHOWN_LINES:
            yield f"      … and {len(lines) - _SHOWN_LINES} more lines; --json has them all"
    else:
        before, after = (_quote(each) for each in (field.before, field.after))
        yield f"    {clean(field.path)}: {before} → {after}"


def _quote(value: str | None) -> str:
    return "(none)" if value is None else clean(value) or '""'


def _paint(text: str, shade: str | None, *, colour: bool) -> str:
    return click.style(text, fg=shade) if colour and shade else text
