"""Diagnostics of an app directory: collected in a report, each with a position and a hint."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from exclave.appconfig.diagnostics.codes import Code, Severity
from exclave.appconfig.diagnostics.positions import KeyPath
from exclave.appconfig.diagnostics.sources import WHOLE, Position, Source

DOCS = "docs/reference/app-config/diagnostics.md"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding: what is wrong, where, and how to fix it."""

    severity: Severity
    code: Code
    file: str
    line: int
    column: int
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class Place:
    """A location: a file, and a key or a position in it."""

    source: Source
    at: KeyPath = ()
    position: Position | None = None
    on_value: bool = False
    """Whether this is the location of the key's value, not of the key."""

    @property
    def value(self) -> "Place":
        """Return the location of the key's value."""
        return Place(self.source, self.at, self.position, on_value=True)

    def find(self) -> Position:
        """Return the line and column."""
        if self.position is not None:
            return self.position
        locate = self.source.locate_value if self.on_value else self.source.locate_key
        return locate(self.at)

    def child(self, *keys: str | int) -> "Place":
        """Return the location of a key below this one."""
        return Place(self.source, (*self.at, *keys))

    def has(self, key: str) -> bool:
        """Return whether the key is present, valid or not."""
        return self.source.has_key((*self.at, key))


@dataclass(slots=True)
class Report:
    """Collects diagnostics."""

    strict: bool = False
    diagnostics: set[Diagnostic] = field(default_factory=set)
    sources: dict[str, Source] = field(default_factory=dict)
    """The files that findings are in, to show their lines."""

    def error(self, code: Code, place: Place | str, message: str, hint: str = "") -> None:
        """Add an error."""
        self._add(Severity.ERROR, code, place, message, hint)

    def warn(self, code: Code, place: Place | str, message: str, hint: str = "") -> None:
        """Add a warning."""
        self._add(Severity.WARNING, code, place, message, hint)

    def warn_or_fail(self, code: Code, place: Place | str, message: str, hint: str = "") -> None:
        """Add a warning, or an error in strict mode."""
        severity = Severity.ERROR if self.strict else Severity.WARNING
        self._add(severity, code, place, message, hint)

    def sorted(self) -> tuple[Diagnostic, ...]:
        """Return the diagnostics ordered by file and position."""
        return tuple(sorted(self.diagnostics, key=_sort_key))

    @property
    def ok(self) -> bool:
        """Whether there are no errors."""
        return all(diagnostic.severity is not Severity.ERROR for diagnostic in self.diagnostics)

    def _add(
        self, severity: Severity, code: Code, place: Place | str, message: str, hint: str
    ) -> None:
        if isinstance(place, str):
            file, position = place, WHOLE
        else:
            file = place.source.path
            position = place.find()
            self.sources[file] = place.source
        advice = hint or f"{code.doc} See {DOCS}#{code}."
        self.diagnostics.add(
            Diagnostic(severity, code, file, position.line, position.column, message, advice)
        )


def suggest(word: str, words: Iterable[str]) -> str:
    """Return a "did you mean" sentence; empty if no word is close."""
    near = guess(word, words)
    return f"Did you mean `{near}`?" if near else ""


def guess(word: str, words: Iterable[str]) -> str:
    """Return the closest word; empty if none is close."""
    known = sorted(set(words))
    folded = {name.lower().replace("-", "_"): name for name in known}
    simple = word.lower().replace("-", "_")
    if simple in folded:
        return folded[simple]
    import difflib  # noqa: PLC0415 - most directories need no guess

    near = difflib.get_close_matches(simple, folded, 1, 0.6)
    if not near and len(simple) >= _LONG_ENOUGH:
        near = [name for name in folded if name.startswith(simple) or simple.startswith(name + "_")]
    return folded[near[0]] if near else ""


def guess_closely(word: str, words: Iterable[str]) -> str:
    """Return the word that this one is a typo of; empty if it may well be another word."""
    import difflib  # noqa: PLC0415 - as above

    near = difflib.get_close_matches(word, list(words), 1, 0.8)
    return near[0] if near else ""


def list_words(words: Iterable[str]) -> str:
    """Return a list of words for a hint; long lists are shortened."""
    known = list(words)
    shown = ", ".join(f"`{name}`" for name in known[:_SHOWN])
    return f"{shown} and {len(known) - _SHOWN} more" if len(known) > _SHOWN else shown


_SHOWN = 12
_LONG_ENOUGH = 3


def _sort_key(diagnostic: Diagnostic) -> tuple[str, int, int, str, str]:
    return diagnostic.file, diagnostic.line, diagnostic.column, diagnostic.code, diagnostic.message
