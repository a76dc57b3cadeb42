"""The folder of a Stack, with everything that it stores on the customer's machine."""

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ValidationError

from exclave.base.errors import Conflict, Kind, Problem
from exclave.runner.control_plane.identity import IDENTITY, KEY
from exclave.runner.data_folder import remove_durably, write_durably
from exclave.wire.stacks import StackDocument, StackTerms

_IDENTITY_FILES = (IDENTITY, KEY, "trusted_keys.json", "sequence", "boot")
_LAUNCHER = """#!/bin/sh
# Looks after the Stack of this folder: {verbs}
exec {command} "$@" --folder {folder}
"""
_VERBS = "status, stop, start, disable, enable, uninstall, secrets, inputs"


class NoStack(Problem):
    """The folder holds no Stack."""

    kind: ClassVar = Kind.NOT_FOUND
    code: ClassVar = "no_stack"
    hint: ClassVar = "Name the folder of the Stack, or run the script that the vendor gave you."


class StackFolder:
    """Paths and documents of one Stack. Folders have mode 0700, files 0600."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().resolve()
        self.document = self.path / "stack.json"
        self.fresh = self.path / "stack.new.json"
        self.settings = self.path / "settings.json"
        self.inputs = self.path / "inputs.json"
        self.secrets = self.path / "secrets.json"
        self.reported = self.path / "report.json"
        self.ended = self.path / "ended.json"
        self.lock = self.path / "supervisor.lock"
        self.launcher = self.path / "stack"
        self.runner = self.path / "runner"
        self.log = self.path / "logs" / "runner.log"

    def prepare(self) -> None:
        """Create the folders."""
        for folder in (self.path, self.runner, self.log.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder.chmod(0o700)

    def adopt(self) -> StackDocument:
        """Store the document of a new run of the script; return the current one.

        A Stack that has an identity keeps it, unless the control plane refused it.
        """
        if not self.fresh.exists():
            return self.read_document()
        fresh = _read_document(self.fresh)
        if self.document.exists():
            known = self.read_document()
            if known.terms.install_id != fresh.terms.install_id:
                raise Conflict(
                    f"`{self.path}` is the Stack of another install, `{known.terms.install}`",
                    hint="Give this one a folder of its own with --folder.",
                )
        if self.ended.exists():
            self._forget_identity()
        if (self.runner / IDENTITY).exists():
            fresh = fresh.model_copy(update={"enrolment": ""})
        self.write_document(fresh)
        remove_durably(self.ended)
        remove_durably(self.fresh)
        return fresh

    def read_document(self) -> StackDocument:
        """Return the document of the Stack."""
        if not self.document.exists():
            raise NoStack(f"`{self.path}` holds no Stack")
        return _read_document(self.document)

    def write_document(self, document: StackDocument) -> None:
        """Store the document of the Stack."""
        write_durably(self.document, document.model_dump_json(indent=2).encode())

    def write_terms(self, terms: StackTerms) -> None:
        """Store what the app requires; remove the enrolment token, which is used by then."""
        document = self.read_document()
        self.write_document(document.model_copy(update={"terms": terms, "enrolment": ""}))

    def write_launcher(self, command: Sequence[str]) -> None:
        """Write the `stack` command with which the customer manages the Stack."""
        text = _LAUNCHER.format(
            verbs=_VERBS, command=shlex.join(command), folder=shlex.quote(str(self.path))
        )
        write_durably(self.launcher, text.encode())
        self.launcher.chmod(0o700)

    def format_command(self, *words: str) -> str:
        """Return a command that the customer can paste."""
        return shlex.join([str(self.launcher), *words])

    def format_secret_command(self, name: str) -> str:
        """Return the command with which the customer sets a secret."""
        return f"run `{self.format_command('secrets', 'set', name)}` on the Stack's machine"

    def read_json(self, file: Path) -> dict[str, Any]:
        """Return a small document; empty if there is none."""
        try:
            document = json.loads(file.read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise Conflict(f"`{file}` is not readable", hint="Remove or repair it.") from error
        return document if isinstance(document, dict) else {}

    def write_json(self, file: Path, value: Mapping[str, Any]) -> None:
        """Store a small document."""
        write_durably(file, json.dumps(value, indent=2, ensure_ascii=False).encode())

    def _forget_identity(self) -> None:
        """Delete the identity, so that the next start enrols again; seal key and audit stay."""
        for name in _IDENTITY_FILES:
            remove_durably(self.runner / name)


def _read_document(file: Path) -> StackDocument:
    try:
        return StackDocument.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise NoStack(f"`{file}` cannot be read") from error
