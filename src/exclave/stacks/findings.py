"""What is wrong with an app's Stack, and which part of the app says so."""

from dataclasses import dataclass

from exclave.appconfig.diagnostics.codes import Code, Severity
from exclave.appconfig.diagnostics.positions import KeyPath
from exclave.appconfig.diagnostics.sources import Position


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of the Stack in terms of the app; file and line are added where they are known."""

    severity: Severity
    code: Code
    message: str
    hint: str = ""
    section: str = ""
    """The section of the app that the part is in, such as `permissions`; empty: the whole app."""
    name: str = ""
    """The name of the part as the app writes it, not rendered; empty if it has none."""
    at: KeyPath = ()
    """The key in the part."""
    position: Position | None = None
    """Where in the text of that key."""


def find_errors(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the findings that forbid to render the Stack."""
    return tuple(finding for finding in findings if finding.severity is Severity.ERROR)
