"""Inputs and outputs of a job, which are passed as files."""

import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from exclave.runner.jobs.workspace import Workspace
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import JsonValue, Reason
from exclave.wire.runner import Dispatch

MAX_BYTES = 1 << 20
MAX_KEYS = 1000
MAX_DEPTH = 50
"""Maximum nesting of outputs; less than the limit of any JSON parser."""

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")


def write_inputs(workspace: Workspace, dispatch: Dispatch) -> dict[str, str]:
    """Write the job's inputs; return the environment variables that point to them."""
    data = json.dumps(dispatch.inputs, ensure_ascii=False, sort_keys=True).encode()
    workspace.write(workspace.inputs, data)
    env = {"EXCLAVE_INPUTS": str(workspace.inputs), "EXCLAVE_JOB": dispatch.job_id}
    if dispatch.approved_digest is not None:
        env["EXCLAVE_APPROVED_DIGEST"] = dispatch.approved_digest
    return env


def read_outputs(file: Path) -> dict[str, JsonValue]:
    """Return outputs from `key=value` lines or one JSON object; raise with the invalid line.

    A missing file means no outputs. The last value of a key is used.
    """
    data = _read_file(file)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        _refuse("is not UTF-8", 1 + data.count(b"\n", 0, error.start))
    outputs = _read_object(text) if text.lstrip().startswith("{") else _read_lines(text)
    _check(outputs)
    return outputs


def read_line_outputs(file: Path) -> dict[str, JsonValue]:
    """Return outputs from lines that are `key=value` or a JSON object; later lines win."""
    data = _read_file(file)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        _refuse("is not UTF-8", 1 + data.count(b"\n", 0, error.start))
    outputs: dict[str, JsonValue] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if line.lstrip().startswith(("{", "[")):
            outputs |= _read_line_object(line, number)
        else:
            outputs |= _read_lines(line, number)
    _check(outputs)
    return outputs


def merge_outputs(
    earlier: Mapping[str, JsonValue], later: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Merge the outputs of a step into those of earlier steps; later values win."""
    merged = {**earlier, **later}
    _check(merged)
    return merged


def _read_file(file: Path) -> bytes:
    # The job may have put anything there, such as a link to a file of the runner, or a pipe.
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return b""
    except OSError as error:
        _refuse(f"cannot be read ({error.strerror})")
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            _refuse("is not a regular file")
        data = _read_most(handle, MAX_BYTES + 1)
    finally:
        os.close(handle)
    if len(data) > MAX_BYTES:
        _refuse(f"is larger than {MAX_BYTES} bytes")
    return data


def _read_most(handle: int, most: int) -> bytes:
    data = b""
    while len(data) < most and (more := os.read(handle, most - len(data))):
        data += more
    return data


def _read_line_object(line: str, number: int) -> dict[str, JsonValue]:
    try:
        value = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        _refuse("has a line that is not a JSON object", number)
    if not isinstance(value, dict):
        _refuse("has a line that is JSON, but not an object", number)
    return value


def _read_lines(text: str, first: int = 1) -> dict[str, JsonValue]:
    outputs: dict[str, JsonValue] = {}
    for number, line in enumerate(text.split("\n"), start=first):
        bare = line.removesuffix("\r")
        key, sign, value = bare.partition("=")
        if not bare.strip():
            continue
        if not sign:
            _refuse("has a line without `=`", number)
        if not _KEY.fullmatch(key):
            _refuse("has a key that is not a name (letters, digits, `_`, `.`, `-`)", number)
        outputs[key] = value
    return outputs


def _read_object(text: str) -> dict[str, JsonValue]:
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        _refuse(f"is not one JSON object ({error.msg})", error.lineno)
    except (ValueError, RecursionError):
        _refuse("is JSON that cannot be read: nested too deep, or a number too long")
    outputs: dict[str, JsonValue] = value
    for key in outputs:
        if not _KEY.fullmatch(key):
            _refuse(f"has a key that is not a name: `{key[:80]!a}`")
    return outputs


def _check(outputs: Mapping[str, JsonValue]) -> None:
    if len(outputs) > MAX_KEYS:
        _refuse(f"has more than {MAX_KEYS} keys")
    if _is_deeper_than(outputs, MAX_DEPTH):
        _refuse(f"is nested deeper than {MAX_DEPTH} levels")
    try:
        size = len(json.dumps(outputs, ensure_ascii=False, allow_nan=False).encode())
    except ValueError:
        _refuse("has a value that JSON cannot hold: an infinite number or half a character")
    if size > MAX_BYTES:
        _refuse(f"is larger than {MAX_BYTES} bytes")
    if _holds_null(outputs):
        _refuse("has a text with a null character")


def _is_deeper_than(value: object, levels: int) -> bool:
    match value:
        case dict():
            parts = list(value.values())
        case list():
            parts = value
        case _:
            return False
    return levels == 0 or any(_is_deeper_than(part, levels - 1) for part in parts)


def _holds_null(value: object) -> bool:
    match value:
        case str():
            return "\0" in value
        case dict():
            return any(_holds_null(part) for pair in value.items() for part in pair)
        case list():
            return any(_holds_null(part) for part in value)
        case _:
            return False


def _refuse_constant(name: str) -> NoReturn:
    _refuse(f"has the number `{name}`, which is not JSON")


def _refuse(what: str, line: int | None = None) -> NoReturn:
    where = f", line {line}" if line is not None else ""
    message = (
        f"the outputs file{where}: it {what}; write `key=value` lines or one JSON object to"
        " $EXCLAVE_OUTPUTS"
    )
    raise WorkFailed(Reason.OUTPUTS_INVALID, message)
