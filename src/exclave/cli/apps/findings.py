"""Formatting of findings about an app directory: source line, caret, hint, summary."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Protocol

from exclave.appconfig.diagnostics.codes import Severity
from exclave.appconfig.diagnostics.report import DOCS
from exclave.appconfig.read_app import CheckedApp
from exclave.cli.terminal import Styled, clean_line, join, style

_COLOURS: Mapping[str, str] = {Severity.ERROR: "red", Severity.WARNING: "yellow"}
_TOKEN = re.compile(r'"[^"]*"|\'[^\']*\'|\[\[?[^\]]*\]\]?|[^\s,=\]}"\']+')
_WIDTH = 110
_TAB = "    "


class Finding(Protocol):
    """A finding of a local check or of the server."""

    @property
    def severity(self) -> str:
        """`error` or `warning`."""

    @property
    def code(self) -> str:
        """What is wrong."""

    @property
    def file(self) -> str:
        """Where."""

    @property
    def line(self) -> int:
        """Where in the file."""

    @property
    def column(self) -> int:
        """Where in the line."""

    @property
    def message(self) -> str:
        """What is wrong, in words."""

    @property
    def hint(self) -> str:
        """What to do."""


def write_findings(reading: CheckedApp, *, colour: bool) -> Styled:
    """Return all findings about a local directory and a summary as text."""
    sources = reading.sources
    entries = [
        (
            diagnostic,
            sources[diagnostic.file].read_line(diagnostic.line)
            if diagnostic.file in sources
            else None,
        )
        for diagnostic in reading.diagnostics
    ]
    return write_report(reading.app.name, entries, len(reading.graph.needs), colour=colour)


def write_report(
    name: str, entries: Sequence[tuple[Finding, str | None]], components: int, *, colour: bool
) -> Styled:
    """Return findings, with their source lines if known, and a summary as text."""
    blocks = [_write_one(finding, line, colour=colour) for finding, line in entries]
    findings = [finding for finding, _ in entries]
    return join([*blocks, _summarise(name, findings, components, colour=colour)])


def write_blocks(entries: Sequence[tuple[Finding, str | None]], *, colour: bool) -> Styled:
    """Return findings as text, without a summary."""
    return join(_write_one(finding, line, colour=colour) for finding, line in entries)


def _write_one(finding: Finding, text: str | None, *, colour: bool) -> Styled:
    label = _paint(
        f"{finding.severity}[{finding.code}]", _COLOURS.get(finding.severity), colour=colour
    )
    message = _paint(finding.message, None, colour=colour)
    where = finding.file if text is None else f"{finding.file}:{finding.line}:{finding.column}"
    lines = [label + ": " + message]
    if text is None:
        lines.append(join(["  ", _dim("-->", colour=colour), " ", clean_line(where)], ""))
        gutter = ""
    else:
        gutter = " " * len(str(finding.line))
        lines.append(join([gutter, " ", _dim("-->", colour=colour), " ", clean_line(where)], ""))
        lines += _write_line(finding, text, gutter, colour=colour)
    lines += _write_notes(finding, f"{gutter or ' '} ", colour=colour)
    return join([*lines, ""])


def _write_line(finding: Finding, text: str, gutter: str, *, colour: bool) -> list[Styled]:
    bar = _dim("|", colour=colour)
    start = max(0, finding.column - 1)
    match = _TOKEN.match(text, start)
    length = max(1, (match.end() - start) if match else 1)
    cut = max(0, start - _WIDTH // 2) if len(text) > _WIDTH else 0
    shown = text[cut : cut + _WIDTH]
    before = _flatten(text[cut:start])
    marked = _flatten(text[start : min(start + length, cut + _WIDTH)])
    carets = _paint("^" * max(1, _measure(marked)), _COLOURS.get(finding.severity), colour=colour)
    number = _dim(str(finding.line), colour=colour)
    return [
        join([gutter, bar], " "),
        join([number, bar, _flatten(shown)], " "),
        join([gutter, bar, " " * _measure(before) + carets], " "),
    ]


def _write_notes(finding: Finding, indent: str, *, colour: bool) -> list[Styled]:
    sign = _dim("=", colour=colour)
    link = f"{DOCS}#{finding.code}"
    notes = [indent + sign + f" hint: {finding.hint}"]
    return notes if link in finding.hint else [*notes, indent + sign + f" docs: {link}"]


def _summarise(name: str, findings: Sequence[Finding], components: int, *, colour: bool) -> Styled:
    counts = {kind: sum(finding.severity == kind for finding in findings) for kind in Severity}
    phrases = [_count(count, kind) for kind, count in counts.items() if count]
    word = (
        _paint("failed", "red", colour=colour)
        if counts[Severity.ERROR]
        else _paint("ok", "green", colour=colour)
    )
    summary = ", ".join(phrases) or "no findings"
    parts = _count(components, "component")
    return clean_line(name) + ": " + word + f", {summary}, {parts}"


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _flatten(text: str) -> Styled:
    return clean_line(text.replace("\t", _TAB))


def _measure(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _paint(text: str, shade: str | None, *, colour: bool) -> Styled:
    return style(text, shade, bold=True, on=colour)


def _dim(text: str, *, colour: bool) -> Styled:
    return style(text, "blue", on=colour)


def describe(reading: CheckedApp) -> dict[str, object]:
    """Return the content of a directory and its findings as JSON."""
    return {
        "ok": reading.ok,
        "app": reading.app.name,
        "diagnostics": [
            {
                "severity": str(diagnostic.severity),
                "code": str(diagnostic.code),
                "file": diagnostic.file,
                "line": diagnostic.line,
                "column": diagnostic.column,
                "message": diagnostic.message,
                "hint": diagnostic.hint,
            }
            for diagnostic in reading.diagnostics
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
