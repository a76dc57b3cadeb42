"""Formatting of the differences between two versions of an app."""

from collections.abc import Iterator

from exclave.cli.terminal import Styled, clean_line, join, style
from exclave.wire.apps import ConfigDiffReply, ConfigFieldChange, ConfigPartChange

_SIGNS = {"added": ("+", "green"), "changed": ("~", "yellow"), "removed": ("-", "red")}
_FILES = "files"
_SHOWN_LINES = 60


def write_diff(diff: ConfigDiffReply, *, colour: bool) -> Styled:
    """Return the differences, the builds and the affected installs as text; empty if none."""
    lines = [line for part in diff.parts for line in _write_part(part, colour=colour)]
    if diff.builds:
        lines += ["", f"Builds: {', '.join(diff.builds)}"]
    if diff.installs:
        lines += ["", "Installs that would see a change once they are upgraded:"]
        lines += [
            f"  {install.name} (version {install.version}): {', '.join(install.parts)}"
            for install in diff.installs
        ]
    if diff.more_installs:
        lines.append(f"  and {diff.more_installs} more")
    return join([*lines, ""] if lines else [])


def _write_part(part: ConfigPartChange, *, colour: bool) -> Iterator[str]:
    sign, shade = _SIGNS.get(part.change, ("?", "cyan"))
    title = part.section.replace("_", " ")
    yield style(clean_line(f"{sign} {title} {part.name}".rstrip()), shade, on=colour)
    for field in part.fields:
        yield from _write_field(field, colour=colour)


def _write_field(field: ConfigFieldChange, *, colour: bool) -> Iterator[str]:
    if field.path == _FILES:
        yield "    files of its source folder changed"
    elif field.diff:
        yield f"    {clean_line(field.path)}:"
        lines = field.diff.split("\n")
        for line in lines[:_SHOWN_LINES]:
            shade = {"+": "green", "-": "red"}.get(line[:1])
            yield "      " + style(line, shade, on=colour)
        if len(lines) > _SHOWN_LINES:
            yield f"      … and {len(lines) - _SHOWN_LINES} more lines; --json has them all"
    else:
        before, after = (_quote(side) for side in (field.before, field.after))
        yield f"    {clean_line(field.path)}: {before} → {after}"


def _quote(value: str | None) -> str:
    return "(none)" if value is None else value or '""'
