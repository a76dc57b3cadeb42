"""Rendered fields of an app directory, as text and as JSON."""

from collections.abc import Mapping, Sequence

from exclave.appconfig.model.app import App
from exclave.appconfig.rendering import Rendered, render_app
from exclave.base.clock import SystemClock
from exclave.base.errors import InvalidInput
from exclave.cli.terminal import Styled, clean, clean_line, join, style


def select(app: App, state: Mapping[str, object], only: str) -> list[Rendered]:
    """Return the rendered fields of the app, or of one part of it."""
    now = SystemClock().now()
    fields = [rendered for rendered in render_app(app, state, now) if only in {"", rendered.owner}]
    owners = {
        f"{entry.section}.{entry.name}" if entry.name else entry.section for entry in app.entries
    }
    if only and only not in owners:
        raise InvalidInput(f"there is no `{only}`", hint="Write `components.<name>` or `sandbox`.")
    return fields


def describe(app: App, fields: Sequence[Rendered]) -> dict[str, object]:
    """Return the rendered fields as JSON."""
    return {
        "app": app.name,
        "complete": all(field.value is not None for field in fields),
        "fields": [
            {
                "owner": field.owner,
                "field": field.field,
                "file": field.file,
                "line": field.line,
                "template": field.template,
                "value": field.value,
                "unknown": field.unknown,
                "hint": field.hint,
            }
            for field in fields
        ],
    }


def write(fields: Sequence[Rendered], *, colour: bool) -> Styled:
    """Return the fields as text, grouped by their owner."""
    lines: list[str] = []
    owner = ""
    for rendered in fields:
        if rendered.owner != owner:
            owner = rendered.owner
            lines += [""] if lines else []
            lines.append(style(clean_line(owner), bold=True, on=colour))
        lines += _write_field(rendered, colour=colour)
    unknown = sum(field.value is None for field in fields)
    lines += ["", f"{len(fields) - unknown} of {len(fields)} fields rendered"]
    if unknown:
        lines[-1] += f", {unknown} unknown"
    return join(lines)


def _write_field(result: Rendered, *, colour: bool) -> list[str]:
    name = clean_line(result.field)
    if result.value is None:
        note = style(f"unknown: {result.unknown}", "yellow", on=colour)
        return [f"  {name} = ? " + note + f" ({clean_line(result.file)}:{result.line})"]
    body = clean(result.value).splitlines()
    if len(body) <= 1:
        return [f"  {name} = {body[0] if body else ''}"]
    return [f"  {name} =", *(f"    {line}" for line in body)]
