"""Render the Stack of a cloud in a worker process: its files, their archives, and the guide."""

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from exclave.base.json_values import JsonObject
from exclave.stacks.base import Guide, Parameter, StackAddress, StackFile
from exclave.stacks.findings import Finding, find_errors
from exclave.stacks.guide_text import write_instructions
from exclave.stacks.model import StackModel
from exclave.stacks.registry import CloudStack, find_cloud_stack
from exclave.stacks.reporting.differences import Change, compare_models
from exclave.stacks.reporting.permissions import build_report
from exclave.stacks.reporting.permissions_json import write_json
from exclave.stacks.reporting.permissions_text import PERMISSIONS, write_markdown

_DATE = (1980, 1, 1, 0, 0, 0)
_MODE = 0o100644 << 16
_TERRAFORM = "terraform"
_ALL_FORMS = frozenset({"azure"})
"""Clouds whose archive has the files of all forms, since one of them includes another."""


@dataclass(frozen=True, slots=True)
class ServedFile:
    """A file as the customer fetches it."""

    name: str
    media_type: str
    data: bytes
    form: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """How the customer runs a Stack, what they fill in, and what changes for them."""

    guide: Guide
    parameters: tuple[Parameter, ...]
    changes: tuple[Change, ...]
    instructions: str
    """The guide in Markdown."""


def render_stack(
    model: StackModel, definitions: Sequence[JsonObject]
) -> tuple[list[ServedFile], tuple[Finding, ...]]:
    """Return the files of a Stack, its archive and its report of permissions.

    No files if the findings forbid to render them. `definitions` are the sandbox and components as
    they are stored: their addresses are in the report.
    """
    stack = _find(model)
    findings = stack.check(model)
    if find_errors(findings):
        return [], findings
    files = stack.render(model).files
    served = [ServedFile(file.name, file.media_type, file.data, file.form) for file in files]
    report = build_report(model, definitions)
    reports = [
        ServedFile(PERMISSIONS, "text/markdown", write_markdown(report).encode()),
        ServedFile("permissions.json", "application/json", write_json(report).encode()),
    ]
    return [*served, *_list_aliases(model, files), *reports], findings


def write_advice(
    model: StackModel, address: StackAddress | None, before: StackModel | None
) -> Advice:
    """Return how the customer of a model runs it; `before` is what they run now."""
    stack = _find(model)
    guide = stack.write_guide(model, address, before)
    return Advice(
        guide,
        stack.list_parameters(model),
        () if before is None else compare_models(before, model),
        write_instructions(model, guide),
    )


def compare_stacks(before: StackModel, after: StackModel) -> tuple[Change, ...]:
    """Return what changes from one model to another, in words."""
    return compare_models(before, after)


def pack_files(files: Sequence[tuple[str, bytes]]) -> bytes:
    """Return a zip of files; the same files give the same bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, data in sorted(files):
            entry = zipfile.ZipInfo(name, _DATE)
            entry.external_attr = _MODE
            entry.create_system = 3
            archive.writestr(entry, data)
    return out.getvalue()


def _find(model: StackModel) -> CloudStack:
    stack = find_cloud_stack(model.cloud)
    if stack is None:
        raise AssertionError(model.cloud)  # only models of clouds with a Stack are stored
    return stack


def _list_aliases(model: StackModel, files: Sequence[StackFile]) -> list[ServedFile]:
    """List the files that have the same name in every Stack of a cloud: `aws.json`, `aws.zip`.

    A module for something else than Terraform is in an archive with the name of its form.
    """
    cloud, first = str(model.cloud), files[0]
    names = {file.name for file in files}
    aliases = []
    is_template = first.media_type == "application/json" and first.form != _TERRAFORM
    if is_template and f"{cloud}.json" not in names:
        aliases.append(ServedFile(f"{cloud}.json", first.media_type, first.data, first.form))
    packed = [file for file in files if file.form == _TERRAFORM or cloud in _ALL_FORMS]
    if packed and f"{cloud}.zip" not in names:
        aliases.append(_pack(f"{cloud}.zip", packed, _TERRAFORM))
    for form in dict.fromkeys(file.form for file in files):
        module = [file for file in files if file.form == form]
        if form != _TERRAFORM and all(file.name.startswith(f"{form}/") for file in module):
            aliases.append(_pack(f"{form}.zip", module, form))
    return aliases


def _pack(name: str, files: Sequence[StackFile], form: str) -> ServedFile:
    data = pack_files([(_strip(file.name, files), file.data) for file in files])
    return ServedFile(name, "application/zip", data, form)


def _strip(name: str, files: Sequence[StackFile]) -> str:
    """Return the name of a file in an archive: without the folder that all its files share."""
    folders = {PurePosixPath(file.name).parts[0] for file in files}
    parts = PurePosixPath(name).parts
    return "/".join(parts[1:]) if len(folders) == 1 and len(parts) > 1 else name
