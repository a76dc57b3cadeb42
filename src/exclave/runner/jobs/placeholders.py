"""Placeholders in the texts of a job, and the values that replace them."""

import json
import re
from collections.abc import Callable, Iterable, Mapping

from exclave.base.errors import Problem
from exclave.base.hcl import escape, escape_template, quote
from exclave.base.hcl_lexer import HclBroken, PieceKind, split_hcl
from exclave.base.json_values import (
    Json,
    JsonObject,
    object_or_empty,
    parse_object,
    require_object,
)
from exclave.base.secrets import Secret
from exclave.runner.control_plane.execution_api import Uplink
from exclave.runner.jobs.executor import JobRun
from exclave.runner.logs.spool import LogWriter
from exclave.runner.outcomes import WorkFailed
from exclave.runner.secrets.sealing import Purpose, Sealer
from exclave.runner.secrets.store import SecretStore
from exclave.wire.jobs import JsonValue, Reason

_WORKSPACE = r"(?:sandbox|component:[a-z0-9][a-z0-9_-]*)"
_PLACEHOLDER = re.compile(
    rf"\(\(exclave:(secret:[^()\s:]+|input:[^()\s:]+|output:{_WORKSPACE}:[A-Za-z0-9_-]+)\)\)"
)
_BEGIN = "((exclave:"
STATE = "state"
"""The purpose of an encrypted Terraform state."""


class Filler:
    """Replaces placeholders by their values; an unknown placeholder is an error."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = dict(values)

    @property
    def secrets(self) -> list[Secret]:
        """The values, to be masked."""
        return [Secret(value) for value in self._values.values()]

    def fill(self, text: str) -> str:
        """Return a plain text, such as an environment variable, with its placeholders filled in."""
        return self._fill(text, lambda value: value)

    def fill_json(self, value: JsonValue) -> JsonValue:
        """Return a JSON value with the placeholders in its strings filled in."""
        match value:
            case str():
                return self.fill(value)
            case list():
                return [self.fill_json(part) for part in value]
            case dict():
                return {self.fill(key): self.fill_json(part) for key, part in value.items()}
            case _:
                return value

    def fill_hcl(self, text: str) -> str:
        """Return HCL with its placeholders filled in; values are quoted, so that they stay text."""
        if _BEGIN not in text:
            return text
        try:
            pieces = list(split_hcl(text))
        except HclBroken as error:
            raise WorkFailed(
                Reason.SYNTAX, f"a variables file is not valid HCL: {error}"
            ) from error
        writers = {
            PieceKind.CODE: quote,
            PieceKind.QUOTED: escape,
            PieceKind.HEREDOC: escape_template,
        }
        return "".join(
            self._fill(piece.text, writers[piece.kind])
            if piece.kind in writers
            else _PLACEHOLDER.sub("", piece.text)
            for piece in pieces
        )

    def _fill(self, text: str, write: Callable[[str], str]) -> str:
        filled = _PLACEHOLDER.sub(lambda match: write(self._get(match[1])), text)
        if _BEGIN in _PLACEHOLDER.sub("", text):
            at = text.index(_BEGIN)
            raise WorkFailed(
                Reason.RENDER_FAILED,
                f"`{text[at : at + 80]}` is not a placeholder that the runner knows",
            )
        return filled

    def _get(self, name: str) -> str:
        try:
            return self._values[name]
        except KeyError:
            raise WorkFailed(
                Reason.SECRET_MISSING, f"the placeholder `{name}` has no value"
            ) from None


def find_placeholders(texts: Iterable[str]) -> set[str]:
    """Return the names of all placeholders: `secret:…`, `input:…`, `output:…`."""
    return {match[1] for text in texts for match in _PLACEHOLDER.finditer(text)}


def is_placeholder(text: str) -> bool:
    """Return whether the text is one placeholder and nothing else."""
    return _PLACEHOLDER.fullmatch(text.strip()) is not None


async def gather_values(
    work: JobRun, log: LogWriter, texts: Iterable[str], secrets: SecretStore, sealer: Sealer
) -> Filler:
    """Fetch the values of all placeholders in the texts, and mask them from now on."""
    named = find_placeholders(texts)
    held = await secrets.fetch(_cut(named, "secret:"))
    values = {f"secret:{name}": value.reveal() for name, value in held.items()}
    inputs = _cut(named, "input:")
    if inputs:
        values |= await _fetch_inputs(work.uplink, inputs)
    values |= await _fetch_outputs(work.uplink, _cut(named, "output:"), sealer)
    filler = Filler(values)
    if values:
        log.hide(filler.secrets)
    return filler


async def read_state(uplink: Uplink, workspace: str, sealer: Sealer) -> JsonObject | None:
    """Read and open the newest state of a workspace."""
    state = await uplink.read_state(workspace)
    if state is None:
        return None
    purpose = Purpose(uplink.org_id, uplink.queue_id, workspace, STATE)
    return parse_object(sealer.unseal(state.sealed, purpose), "the state")


async def _fetch_inputs(uplink: Uplink, names: set[str]) -> dict[str, str]:
    given = await uplink.get_sensitive()
    missing = sorted(names - given.keys())
    if missing:
        raise WorkFailed(
            Reason.SECRET_MISSING,
            f"the sensitive input `{missing[0]}` has no value: set it with `installs inputs set`",
        )
    return {f"input:{name}": given[name] for name in names}


async def _fetch_outputs(uplink: Uplink, names: set[str], sealer: Sealer) -> dict[str, str]:
    values: dict[str, str] = {}
    for workspace in sorted({name.rpartition(":")[0] for name in names}):
        try:
            state = await read_state(uplink, workspace, sealer)
            outputs = require_object((state or {}).get("outputs", {}), "`outputs` of the state")
        except (Problem, ValueError) as error:
            why = error.message if isinstance(error, Problem) else str(error)
            message = f"the outputs of `{workspace}` cannot be read: {why}"
            raise WorkFailed(Reason.STATE_REFUSED, message) from error
        for name in sorted(names):
            output = name.rpartition(":")[2]
            if name.rpartition(":")[0] != workspace:
                continue
            if output not in outputs:
                message = f"`{workspace}` has no output `{output}`: deploy it first"
                raise WorkFailed(Reason.SECRET_MISSING, message)
            values[f"output:{name}"] = _format_value(object_or_empty(outputs[output]).get("value"))
    return values


def _format_value(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(names: Iterable[str], prefix: str) -> set[str]:
    return {name.removeprefix(prefix) for name in names if name.startswith(prefix)}
