"""Read an uploaded app directory in a worker process; imports nothing of the server."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from exclave.appconfig.diagnostics.codes import Code, Severity
from exclave.appconfig.diagnostics.report import Diagnostic
from exclave.appconfig.read_app import CheckedApp, read_app
from exclave.appconfig.stored.packing import UPLOAD_LIMITS
from exclave.appconfig.stored.parts import FrozenApp, freeze_app
from exclave.base.archives import unpack_archive
from exclave.stacks.building.directory import check_stack

SECONDS = 30.0
MOST_BYTES = 2 * 1024 * 1024
"""Of an app's parts as they are stored: every sync and every upgrade reads all of them."""
_MOST_FINDINGS = 1_000
_LONGEST = 1_000
"""Characters of a message, or of the line that it is about."""


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A finding with the line that it is about."""

    diagnostic: Diagnostic
    text: str | None


@dataclass(frozen=True, slots=True)
class Checked:
    """The findings of a directory and, if none is an error, what to store of it."""

    findings: tuple[ShownFinding, ...]
    errors: int
    components: int
    app: FrozenApp | None


def check_upload(archive: str, directory: str, strict: bool, types: Mapping[str, str]) -> Checked:  # noqa: FBT001 - a call of a worker has no keywords
    """Unpack an archive if that was not done yet, then read and check the directory."""
    folder = Path(directory)
    if not folder.exists():
        with Path(archive).open("rb") as file:
            unpack_archive(file, folder, limits=UPLOAD_LIMITS)
    reading = check_stack(read_app(folder, strict=strict, sealed=True, before=types))
    diagnostics = [_as_sync_error(diagnostic) for diagnostic in reading.diagnostics]
    frozen = None
    if all(diagnostic.severity is not Severity.ERROR for diagnostic in diagnostics):
        frozen = freeze_app(reading)
        size = len(json.dumps([part.value for part in frozen.parts]))
        if size > MOST_BYTES:
            diagnostics.append(_refuse_size(size))
            frozen = None
    errors = sum(diagnostic.severity is Severity.ERROR for diagnostic in diagnostics)
    diagnostics.sort(key=lambda diagnostic: diagnostic.severity is not Severity.ERROR)
    shown = tuple(_show(reading, diagnostic) for diagnostic in diagnostics[:_MOST_FINDINGS])
    return Checked(shown, errors, len(reading.graph.needs), frozen)


def _as_sync_error(diagnostic: Diagnostic) -> Diagnostic:
    if diagnostic.code is not Code.REFERENCE_NOT_FOLLOWED:
        return diagnostic
    hint = "A sync fetches nothing: keep the file in the app directory."
    return dataclasses.replace(diagnostic, severity=Severity.ERROR, hint=hint)


def _refuse_size(size: int) -> Diagnostic:
    return Diagnostic(
        Severity.ERROR,
        Code.FILE_TOO_LARGE,
        ".",
        1,
        1,
        f"the app has {size} bytes of definitions and texts; at most {MOST_BYTES} are possible",
        "Keep large texts in the folders of sources, and read them there.",
    )


def _show(reading: CheckedApp, diagnostic: Diagnostic) -> ShownFinding:
    source = reading.sources.get(diagnostic.file)
    short = dataclasses.replace(
        diagnostic, message=diagnostic.message[:_LONGEST], hint=diagnostic.hint[:_LONGEST]
    )
    text = None if source is None else source.read_line(diagnostic.line)[:_LONGEST]
    return ShownFinding(short, text)
