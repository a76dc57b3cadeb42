"""What a Dockerfile says before it is built, and which of its lines made a build fail."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_INSTRUCTION = re.compile(r"\s*([A-Za-z]+)\s+(.*)", re.DOTALL)
_FAILED_STEP = re.compile(r'building at STEP "(?P<step>.*?)": (?P<cause>.*)', re.DOTALL)
_ERROR = re.compile(r"^error:?\s+", re.IGNORECASE)
_EXIT = re.compile(r"exit status (\d+)")
_FLAGS = re.compile(r"^(--\S+\s+)+")


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


def list_base_images(instructions: Sequence[Instruction]) -> list[str]:
    """Return the images that stages are built on, without the stages themselves."""
    images: list[str] = []
    stages: set[str] = set()
    for instruction in instructions:
        if instruction.name != "FROM":
            continue
        words = _FLAGS.sub("", instruction.text).split()
        if words and words[0] not in stages and words[0] != "scratch":
            images.append(words[0])
        if len(words) > 2 and words[1].upper() == "AS":  # noqa: PLR2004 - image, AS, name
            stages.add(words[2])
    return images


def explain_failure(text: str, name: str, output: str) -> str:
    """Return why a build failed, as one line that names the line of the Dockerfile."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    reason = errors[-1] if errors else (lines[-1] if lines else "")
    match = _FAILED_STEP.search(reason)
    if match is None:
        return f"{name}: {_ERROR.sub('', reason) or 'the build failed'}"
    step, cause = match["step"].strip(), match["cause"].strip()
    named = (item for item in read_instructions(text) if _is_step(item, step))
    at = next((f":{item.line}" for item in named), "")
    exit_code = _EXIT.search(cause)
    what = f"exit {exit_code[1]}" if exit_code else cause
    printed = [
        line for line in lines if line not in errors and not line.startswith(("STEP", "time="))
    ]
    last = f"; last line: {printed[-1]}" if exit_code and printed else ""
    return f"{name}{at}: {step}: {what}{last}"


def _is_step(instruction: Instruction, step: str) -> bool:
    written = f"{instruction.name} {instruction.text}"
    return "".join(written.split()) == "".join(step.split())
