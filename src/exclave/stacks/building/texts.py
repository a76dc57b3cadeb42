"""Rendered texts of an app, and the findings about them."""

from dataclasses import dataclass, field

from exclave.appconfig.diagnostics.codes import Code, Severity
from exclave.appconfig.diagnostics.positions import KeyPath
from exclave.appconfig.diagnostics.sources import Position
from exclave.appconfig.templates import Fault
from exclave.stacks.building.parts import Render
from exclave.stacks.findings import Finding


@dataclass(frozen=True, slots=True)
class Where:
    """A key of a part of the app."""

    section: str
    name: str = ""
    at: KeyPath = ()

    def child(self, *keys: str | int) -> "Where":
        """Return a key below this one."""
        return Where(self.section, self.name, (*self.at, *keys))


@dataclass(slots=True)
class Texts:
    """Renders texts and collects findings."""

    render_text: Render
    findings: list[Finding] = field(default_factory=list)

    def error(
        self,
        code: Code,
        where: Where,
        message: str,
        hint: str = "",
        *,
        position: Position | None = None,
    ) -> None:
        """Add what forbids to make the Stack."""
        self._add(Severity.ERROR, code, where, message, hint, position)

    def warn(
        self,
        code: Code,
        where: Where,
        message: str,
        hint: str = "",
        *,
        position: Position | None = None,
    ) -> None:
        """Add what is left out, or may surprise."""
        self._add(Severity.WARNING, code, where, message, hint, position)

    def need(self, text: str, where: Where) -> str:
        """Return a text without which the Stack cannot be made; empty if it cannot be rendered."""
        done = self.render_text(text)
        if isinstance(done, str):
            return done
        message = f"`{where.at[-1]}` cannot be rendered for the Stack: {done.message}"
        self.error(Code.TEMPLATE_SCOPE, where, message, _write_hint(done), position=done.position)
        return ""

    def show(self, text: str, where: Where) -> str:
        """Return a text for people; it stays as the app has it if it cannot be rendered."""
        done = self.render_text(text)
        if isinstance(done, str):
            return done
        message = f"`{where.at[-1]}` stays as it is: {done.message}"
        self.warn(Code.TEMPLATE_SCOPE, where, message, _write_hint(done), position=done.position)
        return text

    def _add(
        self,
        severity: Severity,
        code: Code,
        where: Where,
        message: str,
        hint: str,
        position: Position | None,
    ) -> None:
        finding = Finding(
            severity, code, message, hint, where.section, where.name, where.at, position
        )
        if finding not in self.findings:
            self.findings.append(finding)


def _write_hint(fault: Fault) -> str:
    return fault.hint or "The Stack knows inputs, the install, the app, the org and its account."
