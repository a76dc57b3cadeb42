"""Values that name a file: detection, search paths, and the embedded content."""

import posixpath
import re
from dataclasses import dataclass
from typing import Protocol

from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Place, guess
from exclave.appconfig.diagnostics.sources import Source
from exclave.appconfig.reading.directory import Directory, leaves

_REMOTE = ("http", "git")
_LOCAL = ("./", "../")
_IN_REPOSITORY = re.compile(
    r"(?:git::)?(?:https://)?(?P<host>github\.com|gitlab\.com|bitbucket\.org)"
    r"/(?P<repo>[\w.-]+(?:/[\w.-]+?)+?)(?:\.git)?//(?P<path>[^?#]+)(?:\?ref=(?P<ref>[\w./-]+))?"
)
_RAW = {
    "github.com": "https://raw.githubusercontent.com/{repo}/{ref}/{path}",
    "gitlab.com": "https://gitlab.com/{repo}/-/raw/{ref}/{path}",
    "bitbucket.org": "https://bitbucket.org/{repo}/raw/{ref}/{path}",
}
"""URLs of single files on repository hosts, so that nothing has to be cloned."""
_LONGEST_NAME = 255
_NEVER = "./nuon"
"""A text that starts like this is never a reference."""


class Fetcher(Protocol):
    """Downloads remote files."""

    def fetch(self, address: str) -> str:
        """Return the text at a URL; raise a `Problem` with the reason if that fails."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """The content that replaces a value."""

    content: str
    source: Source | None = None
    """The file that it came from; none for text that stands in the TOML itself."""
    remote: bool = False
    """Whether it is the URL of a file that was not fetched."""


@dataclass(frozen=True, slots=True)
class References:
    """Resolves the file references in one TOML file."""

    directory: Directory
    bases: tuple[str, ...]
    """Folders that relative references start from; the first one that has the file is used."""
    fetcher: Fetcher | None = None

    def embed(self, value: str, place: Place) -> Embedded | None:
        """Return the content that a value names; report and return None on failure."""
        if not value.startswith((*_LOCAL, *_REMOTE, "file")):
            self._check_forgotten(value, place)
            return Embedded(value)
        if value.startswith(_NEVER):
            return Embedded(value)
        if "{{" in value and "template_url" in place.at:
            return Embedded(value)
        if any(character.isspace() for character in value.strip()) and not self._names_file(
            value.strip()
        ):
            return self._keep_text(value, place)
        if value.startswith(_LOCAL):
            return self._embed_local(value.strip(), place)
        if value.startswith("file"):
            return self._embed_file(value, place)
        return self._embed_remote(value, place)

    def embed_path(self, value: str, place: Place) -> Embedded | None:
        """Return the content of a file by its plain path from the app directory."""
        return self._find(value, [posixpath.normpath(value)], place)

    def _check_forgotten(self, value: str, place: Place) -> None:
        """Report a file name without the leading `./`."""
        if len(value) > _LONGEST_NAME or len(value.split()) != 1 or value.startswith(("/", "~")):
            return
        if any(map(self.directory.has_file, self._resolve(value))):
            message = f"`{value}` is kept as text, and there is a file of that name"
            hint = f"Write `./{value}` to name the file."
            self.directory.report.warn(Code.REFERENCE_DOUBTFUL, place, message, hint)

    def _names_file(self, value: str) -> bool:
        return value.startswith(_LOCAL) and any(map(self.directory.has_file, self._resolve(value)))

    def _embed_local(self, value: str, place: Place) -> Embedded | None:
        return self._find(value, self._resolve(value), place)

    def _resolve(self, value: str) -> list[str]:
        """Return the paths that a relative reference can mean, best first."""
        tried = [posixpath.normpath(posixpath.join(base, value)) for base in self.bases]
        return list(dict.fromkeys(tried))

    def _embed_file(self, value: str, place: Place) -> Embedded | None:
        if not value.startswith("file://"):
            return Embedded(value)
        path = value.removeprefix("file://")
        root = f"{self.directory.root}/"
        if not path.startswith(root):
            self._refuse(value, place)
            return None
        return self._find(value, [posixpath.normpath(path.removeprefix(root))], place)

    def _embed_remote(self, value: str, place: Place) -> Embedded | None:
        report = self.directory.report
        is_template_url = "template_url" in place.at
        address = value if value.startswith("http") else find_raw_address(value)
        if self.fetcher is None or not address or (is_template_url and address != value):
            if not is_template_url:
                message = f"`{value}` was not fetched: its content is not checked"
                hint = "Add --fetch to get it, or keep" if address else "Keep"
                hint += " the file in the app directory."
                report.warn(Code.REFERENCE_NOT_FOLLOWED, place, message, hint)
            return Embedded(value, remote=True)
        try:
            return Embedded(self.fetcher.fetch(address), remote=True)
        except FetchFailed as problem:
            report.error(Code.REFERENCE_FAILED, place, f"`{value}`: {problem}", problem.hint)
            return None

    def _find(self, value: str, tried: list[str], place: Place) -> Embedded | None:
        path = next(filter(self.directory.has_file, tried), None)
        if path is not None:
            if leaves(path):
                message = f"`{value}` is outside the app directory"
                hint = "It is read here, but does not go along when the app is uploaded; links do."
                self.directory.report.warn(Code.REFERENCE_OUTSIDE, place, message, hint)
            source = self.directory.read(path, place, toml=False)
            return None if source is None else Embedded(source.text, source)
        inside = [path for path in tried if not leaves(path) and "\0" not in path]
        if not inside:
            self._refuse(value, place)
            return None
        near = self._guess_file(inside)
        if any(map(self.directory.has_folder, inside)):
            message, hint = f"`{value}` is a folder, not a file", "Name a file in it."
            self.directory.report.error(Code.REFERENCE_MISSING, place, message, hint)
            return None
        hint = f"Looked for {', '.join(f'`{path}`' for path in inside)}."
        if any(map(self.directory.has, inside)):
            hint += " It is a link whose target is gone."
        hint += f" Did you mean `{near}`?" if near else ""
        self.directory.report.error(
            Code.REFERENCE_MISSING, place, f"there is no file `{value}`", hint
        )
        return None

    def _guess_file(self, tried: list[str]) -> str:
        for path in tried:
            folder, name = posixpath.split(path)
            near = guess(name, self.directory.list_files(folder))
            if near:
                return posixpath.join(folder, near)
        return ""

    def _refuse(self, value: str, place: Place) -> None:
        message = f"`{value}` is outside the app directory"
        hint = "Copy the file into the app directory, or link it from there."
        self.directory.report.error(Code.REFERENCE_OUTSIDE, place, message, hint)

    def _keep_text(self, value: str, place: Place) -> Embedded:
        start = value.split(maxsplit=1)[0][:40]
        message = f"a text that starts with `{start}` looks like the name of a file"
        hint = "It is kept as text. Start it with another line, such as `#!/bin/sh`."
        self.directory.report.warn(Code.REFERENCE_DOUBTFUL, place, message, hint)
        return Embedded(value)


def find_raw_address(value: str) -> str:
    """Return the URL of a file of a public repository that needs no git; empty if there is none."""
    match = _IN_REPOSITORY.fullmatch(value)
    if match is None:
        return ""
    known = match.groupdict()
    return _RAW[known["host"]].format(**{**known, "ref": known["ref"] or "HEAD"})


class FetchFailed(Exception):  # noqa: N818 - the house words problems like this
    """A remote file could not be downloaded."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
