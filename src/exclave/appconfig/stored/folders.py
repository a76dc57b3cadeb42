"""Source folders inside the app directory: which parts use them, and their digests."""

import os
import posixpath
from collections.abc import Iterator, Mapping
from pathlib import Path

from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.positions import KeyPath
from exclave.appconfig.diagnostics.report import Place, Report, guess
from exclave.appconfig.model.app import App, Entry
from exclave.appconfig.model.fields import Table
from exclave.appconfig.model.kinds.branches import Branch
from exclave.appconfig.model.kinds.installs import InstallsPointer
from exclave.appconfig.model.kinds.shared import HERE, Repo
from exclave.appconfig.reading.directory import Directory, leaves


def find_folder(repo: Repo | None) -> str:
    """Return the folder of the app directory that a source names; empty for other repositories."""
    if repo is None or repo.repo != HERE:
        return ""
    return posixpath.normpath(repo.directory)


def list_folders(table: Table) -> tuple[str, ...]:
    """Return the folders of the app directory that a part is built from."""
    folders = {find_folder(repo) for _, repo in _find_repos(table, ())}
    return tuple(sorted(folders - {""}))


def check_folders(app: App, directory: Directory, report: Report) -> Mapping[str, str]:
    """Check the source folders in the app directory and return their digests."""
    digests: dict[str, str] = {}
    for entry in app.entries:
        for at, repo in _find_repos(entry.value, ()):
            if repo.repo != HERE or not _check_use(entry, at, report):
                continue
            folder = find_folder(repo)
            if folder not in digests:
                place = entry.place.child(*at, "directory").value
                digests[folder] = _digest(directory, folder, place, report)
    return {folder: digest for folder, digest in digests.items() if digest}


def _find_repos(table: Table, at: KeyPath) -> Iterator[tuple[KeyPath, Repo]]:
    for key, field in table.FIELDS.items():
        value = getattr(table, field.attribute)
        if isinstance(value, Repo):
            yield (*at, key), value
        elif isinstance(value, Table):
            yield from _find_repos(value, (*at, key))
        elif isinstance(value, tuple):
            for index, element in enumerate(value):
                if isinstance(element, Table):
                    yield from _find_repos(element, (*at, key, index))


def _check_use(entry: Entry, at: KeyPath, report: Report) -> bool:
    if at[-1] != "public_repo":
        message = f'`repo = "."` goes with `public_repo`, not with `{at[-1]}`'
        hint = "The app directory needs no credentials: write [public_repo]."
    elif isinstance(entry.value, Branch | InstallsPointer):
        message = f"{entry.title} follows a repository, and the app directory is not one"
        hint = 'Write the repository: repo = "owner/name".'
    else:
        return True
    report.error(Code.CONFLICT, entry.place.child(*at, "repo").value, message, hint)
    return False


def _digest(directory: Directory, folder: str, place: Place, report: Report) -> str:
    """Return the digest of a folder; report and return "" if it cannot be a source."""
    flaw = _find_flaw(directory, folder)
    if flaw is not None:
        report.error(flaw[0], place, flaw[1], flaw[2])
        return ""
    # Loaded here, because most apps name repositories, and start faster so.
    from exclave.appconfig.stored.packing import UPLOAD_LIMITS  # noqa: PLC0415
    from exclave.base.archives import ArchiveProblem, digest_folder  # noqa: PLC0415

    try:
        return digest_folder(directory.root / folder, limits=UPLOAD_LIMITS)
    except ArchiveProblem as problem:
        message = f"`{folder}` cannot be uploaded: {problem.message}"
        report.error(Code.FOLDER_REFUSED, place, message, problem.advice)
    except OSError as error:
        message = f"`{folder}` cannot be read: {error.strerror}"
        report.error(Code.FOLDER_REFUSED, place, message, "Check its permissions.")
    return ""


def _find_flaw(directory: Directory, folder: str) -> tuple[Code, str, str] | None:
    path = directory.root / folder
    if leaves(folder) or "\0" in folder:
        message = f"`{folder}` is outside the app directory"
        return Code.REFERENCE_OUTSIDE, message, _COPY
    if not path.is_dir():
        near = guess(posixpath.basename(folder), _list_beside(path))
        meant = posixpath.join(posixpath.dirname(folder), near)
        hint = "The path starts from the app directory."
        hint += f" Did you mean `{meant}`?" if near else ""
        return Code.REFERENCE_MISSING, f"there is no folder `{folder}` in the app directory", hint
    real, root = os.path.realpath(path), os.path.realpath(directory.root)
    if os.path.commonpath([real, root]) != root:
        return Code.FILE_OUTSIDE, f"`{folder}` is a link that leads out of the app directory", _COPY
    return None


def _list_beside(path: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in path.parent.iterdir() if entry.is_dir())
    except OSError:
        return []


_COPY = "Sources are uploaded with the app directory: copy the folder into it."
