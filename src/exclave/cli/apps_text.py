"""How findings about an app directory look for a person: source line, caret, hint, summary."""

import re
import unicodedata

import click

from exclave.appconfig.apps import Reading
from exclave.appconfig.codes import Severity
from exclave.appconfig.diagnostics import DOCS, Diagnostic
from exclave.cli.errors import clean

_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow"}
_TOKEN = re.compile(r'"[^"]*"|\'[^\']*\'|\[\[?[^\]]*\]\]?|[^\s,=\]}"\']+')
_WIDTH = 110
_TAB = "    "


def write_findings(reading: Reading, *, colour: bool) -> str:
    """Write all findings, and a summary."""
    blocks = [_write_one(each, reading, colour=colour) for each in reading.diagnostics]
    return "\n".join([*blocks, _summarise(reading, colour=colour)])


def _write_one(each: Diagnostic, reading: Reading, *, colour: bool) -> str:
    label = _paint(f"{each.severity}[{each.code}]", _COLOURS[each.severity], colour=colour)
    message = _paint(clean(each.message), None, colour=colour)
    source = reading.sources.get(each.file)
    where = f"{each.file}:{each.line}:{each.column}" if source else each.file
    lines = [f"{label}: {message}"]
    if source is None:
        lines.append(f"  {_dim('-->', colour=colour)} {clean(where)}")
        gutter = ""
    else:
        gutter = " " * len(str(each.line))
        lines.append(f"{gutter} {_dim('-->', colour=colour)} {clean(where)}")
        lines += _write_line(each, source.read_line(each.line), gutter, colour=colour)
    lines += _write_notes(each, f"{gutter or ' '} ", colour=colour)
    return "\n".join([*lines, ""])


def _write_line(each: Diagnostic, text: str, gutter: str, *, colour: bool) -> list[str]:
    bar = _dim("|", colour=colour)
    start = max(0, each.column - 1)
    found = _TOKEN.match(text, start)
    length = max(1, (found.end() - start) if found else 1)
    cut = max(0, start - _WIDTH // 2) if len(text) > _WIDTH else 0
    shown = text[cut : cut + _WIDTH]
    before = _flatten(text[cut:start])
    marked = _flatten(text[start : min(start + length, cut + _WIDTH)])
    carets = _paint("^" * max(1, _measure(marked)), _COLOURS[each.severity], colour=colour)
    number = _dim(str(each.line), colour=colour)
    return [
        f"{gutter} {bar}",
        f"{number} {bar} {_flatten(shown)}",
        f"{gutter} {bar} {' ' * _measure(before)}{carets}",
    ]


def _write_notes(each: Diagnostic, indent: str, *, colour: bool) -> list[str]:
    sign = _dim("=", colour=colour)
    link = f"{DOCS}#{each.code}"
    notes = [f"{indent}{sign} hint: {clean(each.hint)}"]
    return notes if link in each.hint else [*notes, f"{indent}{sign} docs: {link}"]


def _summarise(reading: Reading, *, colour: bool) -> str:
    counts = {
        severity: sum(each.severity is severity for each in reading.diagnostics)
        for severity in Severity
    }
    told = [
        f"{count} {severity}{'' if count == 1 else 's'}"
        for severity, count in counts.items()
        if count
    ]
    found = ", ".join(told) or "no findings"
    word = (
        _paint("ok", "green", colour=colour)
        if reading.ok
        else _paint("failed", "red", colour=colour)
    )
    size = len(reading.graph.needs)
    parts = f"{size} component{'' if size == 1 else 's'}"
    return f"{clean(reading.app.name)}: {word}, {found}, {parts}\n"


def _flatten(text: str) -> str:
    return clean(text.replace("\t", _TAB))


def _measure(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def _paint(text: str, shade: str | None, *, colour: bool) -> str:
    return click.style(text, fg=shade, bold=True) if colour else text


def _dim(text: str, *, colour: bool) -> str:
    return click.style(text, fg="blue") if colour else text


def describe(reading: Reading) -> dict[str, object]:
    """Say what a directory holds, for programs."""
    return {
        "ok": reading.ok,
        "app": reading.app.name,
        "diagnostics": [
            {
                "severity": str(each.severity),
                "code": str(each.code),
                "file": each.file,
                "line": each.line,
                "column": each.column,
                "message": each.message,
                "hint": each.hint,
            }
            for each in reading.diagnostics
        ],
        "components": [
            {
                "name": name,
                "type": reading.graph.types[name],
                "dependencies": list(needs),
                "hash": reading.hashes[name],
            }
            for name, needs in reading.graph.needs.items()
        ],
        "order": [list(names) for names in reading.graph.groups()],
    }
