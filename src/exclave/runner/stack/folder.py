"""The folder of a Stack, with everything that it stores on the customer's machine."""

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from pydantic import ValidationError

from exclave.base.errors import Conflict, Kind, Problem
from exclave.base.json_values import Json, JsonObject, parse_object, require_text, text_or_empty
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


@dataclass(frozen=True, slots=True)
class ReportReply:
    """What the control plane replied to the latest report of the Stack."""

    ok: bool
    at: str = ""
    digest: str = ""
    message: str = ""
    hint: str = ""

    def to_json(self) -> dict[str, Json]:
        """Return the reply as it is stored and shown; empty texts are left out."""
        texts = {
            "at": self.at,
            "digest": self.digest,
            "message": self.message,
            "hint": self.hint,
        }
        return {"ok": self.ok, **{name: text for name, text in texts.items() if text}}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the control plane refused the runner for good."""

    code: str = ""
    message: str = ""
    hint: str = ""


T = TypeVar("T")


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

    def read_settings(self) -> JsonObject:
        """Return the settings of the Stack's runner by name; empty if none were stored."""
        return self._read(self.settings, lambda settings: settings) or {}

    def read_inputs(self) -> dict[str, str]:
        """Return the values that the customer set by name of the input."""
        return self._read(self.inputs, _read_texts) or {}

    def read_report_reply(self) -> ReportReply | None:
        """Return the reply to the latest report; None before the first."""
        return self._read(self.reported, _read_reply)

    def write_report_reply(self, reply: ReportReply) -> None:
        """Store the reply to a report."""
        self.write_json(self.reported, reply.to_json())

    def read_refusal(self) -> Refusal | None:
        """Return why the runner was refused for good; None if it was not."""
        return self._read(self.ended, _read_refusal)

    def write_json(self, file: Path, value: JsonObject) -> None:
        """Store a small document."""
        write_durably(file, json.dumps(value, indent=2, ensure_ascii=False).encode())

    def _read(self, file: Path, read: Callable[[JsonObject], T]) -> T | None:
        """Return what a small document says; None where there is none."""
        try:
            return read(parse_object(file.read_bytes(), "it"))
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise Conflict(
                f"`{file}` is not readable: {error}", hint="Remove or repair it."
            ) from error

    def _forget_identity(self) -> None:
        """Delete the identity, so that the next start enrols again; seal key and audit stay."""
        for name in _IDENTITY_FILES:
            remove_durably(self.runner / name)


def _read_document(file: Path) -> StackDocument:
    try:
        return StackDocument.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise NoStack(f"`{file}` cannot be read") from error


def _read_texts(document: JsonObject) -> dict[str, str]:
    return {name: require_text(text, f"`{name}`") for name, text in document.items()}


def _read_reply(document: JsonObject) -> ReportReply:
    names = ("at", "digest", "message", "hint")
    texts = {name: text_or_empty(document.get(name)) for name in names}
    return ReportReply(ok=bool(document.get("ok")), **texts)


def _read_refusal(document: JsonObject) -> Refusal:
    names = ("code", "message", "hint")
    return Refusal(**{name: text_or_empty(document.get(name)) for name in names})
