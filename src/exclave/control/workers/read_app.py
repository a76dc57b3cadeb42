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

SECONDS = 30.0
MOST_BYTES = 2 * 1024 * 1024
"""Of an app's parts as they are stored: every sync and every upgrade reads all of them."""
_MOST_FINDINGS = 1_000
_LONGEST = 1_000
"""Characters of a message, or of the line that it is about."""


@dataclass(frozen=True, slots=True)
class ShownFinding:
    """A finding with the line that it is about."""

    found: Diagnostic
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
    reading = read_app(folder, strict=strict, sealed=True, before=types)
    found = [_as_sync_error(each) for each in reading.diagnostics]
    frozen = None
    if all(each.severity is not Severity.ERROR for each in found):
        frozen = freeze_app(reading)
        size = len(json.dumps([part.value for part in frozen.parts]))
        if size > MOST_BYTES:
            found.append(_refuse_size(size))
            frozen = None
    errors = sum(each.severity is Severity.ERROR for each in found)
    found.sort(key=lambda each: each.severity is not Severity.ERROR)
    shown = tuple(_show(reading, each) for each in found[:_MOST_FINDINGS])
    return Checked(shown, errors, len(reading.graph.needs), frozen)


def _as_sync_error(found: Diagnostic) -> Diagnostic:
    if found.code is not Code.REFERENCE_NOT_FOLLOWED:
        return found
    hint = "A sync fetches nothing: keep the file in the app directory."
    return dataclasses.replace(found, severity=Severity.ERROR, hint=hint)


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


def _show(reading: CheckedApp, found: Diagnostic) -> ShownFinding:
    source = reading.sources.get(found.file)
    short = dataclasses.replace(found, message=found.message[:_LONGEST], hint=found.hint[:_LONGEST])
    text = None if source is None else source.read_line(found.line)[:_LONGEST]
    return ShownFinding(short, text)
