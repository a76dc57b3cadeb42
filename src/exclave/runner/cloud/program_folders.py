"""The runner programs on a machine in a cloud: one that runs, the one before, one to be tried."""

import hashlib
import json
import os
import shutil
import tarfile
from pathlib import Path
from typing import ClassVar, Final

from exclave.base.errors import Kind, Problem
from exclave.runner.cloud.starter import CURRENT, FAILED, NEXT, TRIAL, VERSIONS

_NAME: Final = 16
_MOST_UNPACKED: Final = 1 << 30


class ProgramWrong(Problem):
    """What was served as the runner program is something else."""

    kind: ClassVar = Kind.INVALID
    code: ClassVar = "program_wrong"
    hint: ClassVar = "The machine stays with its program. Check the mirror and the proxy."


class ProgramFolders:
    """The folder in which the boot script has put the program; the names of programs are digests.

    Switching is done by `starter.py`, which starts the runner: here is only said what it shall try.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def is_managed(self) -> bool:
        """Whether this runner was started from here, by a program that can switch."""
        return (self._root / "start.py").is_file() and (self._root / CURRENT).is_symlink()

    def is_current(self, digest: str) -> bool:
        """Return whether the program with this digest is the current one."""
        return (self._root / CURRENT).readlink().name == digest[:_NAME]

    def find_failure(self) -> tuple[str, str]:
        """Return the name of the program that was tried in vain last, and why; or empty texts."""
        try:
            facts = json.loads((self._root / FAILED).read_text())
            return str(facts["program"]), str(facts["reason"])
        except (OSError, ValueError, LookupError, TypeError):
            return "", ""

    def explain_failure(self) -> str:
        """Return in words which program was left again, and why; empty if none was."""
        name, reason = self.find_failure()
        return f"the program {name} was left again: {reason}" if name else ""

    def has_failed(self, digest: str) -> bool:
        """Return whether the program with this digest was tried in vain."""
        return self.find_failure()[0] == digest[:_NAME]

    def find(self, digest: str) -> Path:
        """Return the folder of a program, which may not be there."""
        return self._root / VERSIONS / digest[:_NAME]

    def unpack(self, archive: Path, digest: str) -> None:
        """Verify an archive and unpack it into a folder that appears when it is complete."""
        with archive.open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
        if actual != digest:
            raise ProgramWrong(f"the program served has the checksum {actual}, not {digest}")
        folder = self.find(digest)
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        try:
            _unpack_files(archive, part)
        except (tarfile.TarError, EOFError, OSError) as error:
            raise ProgramWrong(f"the program cannot be unpacked: {error}") from error
        part.replace(folder)

    def set_next(self, digest: str) -> None:
        """Let the next start try a program."""
        link = self._root / f"{NEXT}.new"
        link.unlink(missing_ok=True)
        link.symlink_to(Path(VERSIONS) / self.find(digest).name)
        link.replace(self._root / NEXT)

    def confirm(self) -> bool:
        """End a trial: this program works. Return whether there was one."""
        try:
            before = str(json.loads((self._root / TRIAL).read_text())["before"])
        except FileNotFoundError:
            return False
        (self._root / FAILED).unlink(missing_ok=True)
        (self._root / TRIAL).unlink()
        kept = {before, (self._root / CURRENT).readlink().name}
        for folder in (self._root / VERSIONS).iterdir():
            if folder.name not in kept:
                shutil.rmtree(folder, ignore_errors=True)
        return True


def _unpack_files(archive: Path, part: Path) -> None:
    left = _MOST_UNPACKED
    with tarfile.open(archive) as members:
        for member in members:
            target = part / member.name
            left -= member.size
            if not member.isreg() or ".." in target.parts or Path(member.name).is_absolute():
                raise ProgramWrong(f"the program has a strange member: {member.name}")
            if left < 0:
                raise ProgramWrong(f"the program unpacks to more than {_MOST_UNPACKED} bytes")
            content = members.extractfile(member)
            if content is not None:
                target.parent.mkdir(parents=True, exist_ok=True)
                with content, target.open("wb") as out:
                    shutil.copyfileobj(content, out)
                os.chmod(target, 0o644)  # noqa: PTH101 - jobs of other users read nothing secret here
