"""What a Dockerfile says before it is built, and which of its lines made a build fail."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from exclave.wire.jobs import Reason

_INSTRUCTION = re.compile(r"\s*([A-Za-z]+)\s+(.*)", re.DOTALL)
_FAILED_STEP = re.compile(r'building at STEP "(?P<step>.*?)": (?P<cause>.*)', re.DOTALL)
_ERROR = re.compile(r"^error:?\s+", re.IGNORECASE)
_EXIT = re.compile(r"exit status (\d+)")
_FLAGS = re.compile(r"^(--\S+\s+)+")
_VARIABLE = re.compile(r"\$(?:(?P<name>\w+)|\{(?P<braced>\w+)(?::-(?P<default>[^}]*))?\})")
_CHATTER = ("STEP", "time=", "subprocess exited with status", "[")
_FOREIGN = "exec format error"
_NO_SPACE = "no space left on device"


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction and the line that it begins on."""

    line: int
    name: str
    text: str


def read_instructions(text: str) -> list[Instruction]:
    """Return the instructions of a Dockerfile; lines that end in a backslash go on."""
    instructions: list[Instruction] = []
    began, parts = 0, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or (not line.strip() and not parts):
            continue
        began = began or number
        goes_on = line.rstrip().endswith("\\")
        parts.append(line.rstrip().removesuffix("\\").strip())
        if goes_on:
            continue
        match = _INSTRUCTION.fullmatch(" ".join(part for part in parts if part))
        if match:
            instructions.append(Instruction(began, match[1].upper(), match[2]))
        began, parts = 0, []
    return instructions


def list_base_images(
    instructions: Sequence[Instruction], args: Mapping[str, str] | None = None
) -> list[str]:
    """Return the images that stages are built on, without the stages themselves.

    `args` are the build arguments: an `ARG` before the first stage may be part of a name.
    """
    known: dict[str, str] = {}
    images: list[str] = []
    stages: set[str] = set()
    for instruction in instructions:
        if instruction.name == "ARG" and not images and not stages:
            known |= _read_argument(instruction.text, args or {})
        if instruction.name != "FROM":
            continue
        words = _expand(_FLAGS.sub("", instruction.text), known).split()
        if words and words[0] not in stages and words[0] != "scratch":
            images.append(words[0])
        if len(words) > 2 and words[1].upper() == "AS":  # noqa: PLR2004 - image, AS, name
            stages.add(words[2])
    return images


def _read_argument(text: str, args: Mapping[str, str]) -> dict[str, str]:
    """Return the value of an argument: the one that is given, or its default."""
    name, _, default = text.strip().partition("=")
    return {name: args.get(name, default.strip("\"'"))}


def _expand(text: str, known: Mapping[str, str]) -> str:
    """Return a text with the values of arguments; what is not known stays as it is."""

    def replace(match: re.Match[str]) -> str:
        name = match["name"] or match["braced"]
        return known.get(name) or match["default"] or match[0]

    return _VARIABLE.sub(replace, text)


@dataclass(frozen=True, slots=True)
class BuildFailure:
    """Why a build failed, as one line that names the line of the Dockerfile."""

    reason: Reason
    message: str


def explain_failure(text: str, name: str, output: str, foreign: Sequence[str] = ()) -> BuildFailure:
    """Return why a build failed; `foreign` are platforms that this machine cannot emulate."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    last = errors[-1] if errors else (lines[-1] if lines else "")
    match = _FAILED_STEP.search(last)
    if match is None:
        cause = _ERROR.sub("", last) or "the build failed"
        return BuildFailure(_classify(cause), f"{name}: {cause}")
    step, cause = match["step"].strip(), match["cause"].strip()
    named = (item for item in read_instructions(text) if _is_step(item, step))
    at = next((f":{item.line}" for item in named), "")
    printed = [line for line in lines if line not in errors and not line.startswith(_CHATTER)]
    what = _explain_step(cause, printed, foreign)
    return BuildFailure(_classify(" ".join((cause, *printed[-3:]))), f"{name}{at}: {step}: {what}")


def _explain_step(cause: str, printed: Sequence[str], foreign: Sequence[str]) -> str:
    """Return what an instruction failed of."""
    last = printed[-1] if printed else ""
    # Old versions of buildah do not always pass on what was printed last.
    is_silent = bool(foreign) and not printed and _EXIT.search(cause) is not None
    if is_silent or any(_FOREIGN in line for line in (cause, *printed[-3:])):
        wanted = f" ({', '.join(foreign)})" if foreign else ""
        return (
            f"it is a program of another platform{wanted} and the build runner cannot emulate it:"
            " install qemu-user-static with binfmt on it, or compile in a stage"
            " `FROM --platform=$BUILDPLATFORM`"
        )
    exit_code = _EXIT.search(cause)
    if exit_code is None:
        return cause
    return f"exit {exit_code[1]}" + (f"; last line: {last}" if last else "")


def _classify(text: str) -> Reason:
    return Reason.DISK_FULL if _NO_SPACE in text.lower() else Reason.EXIT_CODE


def _is_step(instruction: Instruction, step: str) -> bool:
    """Return whether buildah means this instruction; it writes a list of words as a text."""
    text = instruction.text
    try:
        words = json.loads(text)
    except ValueError:
        words = None
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        text = " ".join(words)
    return "".join(f"{instruction.name} {text}".split()) == "".join(step.split())
