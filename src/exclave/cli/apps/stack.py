"""`exclave apps stack`: the files of a Stack from an app directory alone."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from exclave.appconfig.read_app import CheckedApp, read_app
from exclave.appconfig.stored.freezing import freeze
from exclave.base.errors import InvalidInput
from exclave.base.json_values import Json
from exclave.cli.apps.findings import write_blocks
from exclave.cli.apps.stack_folder import write_folder
from exclave.cli.terminal import Styled, clean_line, join, print_err, print_json, print_out
from exclave.stacks.base import StackFile
from exclave.stacks.building.directory import DirectoryModel, build_from_directory
from exclave.stacks.building.example import RUNNER_URL, make_example
from exclave.stacks.digest import digest_model
from exclave.stacks.guide_text import INSTRUCTIONS, write_instructions
from exclave.stacks.registry import CLOUD_STACKS, CloudStack, find_cloud_stack
from exclave.stacks.reporting.permissions import build_report
from exclave.stacks.reporting.permissions_json import write_json
from exclave.stacks.reporting.permissions_text import PERMISSIONS, write_markdown


def write_stack(
    directory: Path,
    out: Path,
    *,
    cloud: str,
    region: str,
    forms: Sequence[str],
    inputs: Mapping[str, str],
    runner_url: str,
    json_mode: bool,
    colour: bool,
) -> int:
    """Write the files of a Stack into a folder; return the exit code."""
    checked = read_app(directory)
    stack = _choose_stack(checked, cloud)
    _check_options(checked, stack, forms, inputs)
    install = make_example(checked.app.name, stack.cloud, region, runner_url or RUNNER_URL)
    built = build_from_directory(checked, stack, install, inputs)
    if not json_mode and built.diagnostics:
        print_err(_write_diagnostics(built, colour=colour))
    files = _render(checked, built, stack, forms) if built.is_ok else {}
    if built.is_ok:
        facts = {"cloud": str(stack.cloud), "digest": digest_model(built.model)}
        write_folder(out, {name: file.content for name, file in files.items()}, facts)
    if json_mode:
        print_json(_describe(built, out, files))
    elif built.is_ok:
        print_out(join(clean_line(f"{out}/{name}") for name in files))
        print_err(f"\nPreview of a Stack for {stack.cloud}: read {out}/{INSTRUCTIONS} first.")
    else:
        print_err("The app has errors, so nothing was written.")
    return 0 if built.is_ok else 1


def _choose_stack(checked: CheckedApp, cloud: str) -> CloudStack:
    wanted = cloud or checked.app.cloud
    known = ", ".join(f"`{name}`" for name in CLOUD_STACKS)
    if not wanted or (wanted == "local" and not cloud):
        what = "for `local`" if wanted else "for no cloud"
        raise InvalidInput(
            f"the app is {what}, and only a Stack for a cloud has templates",
            hint=f"Choose a cloud with --cloud: {known}.",
        )
    stack = find_cloud_stack(wanted)
    if stack is None:
        raise InvalidInput(f"there is no Stack for `{wanted}` yet", hint=f"There is {known}.")
    return stack


def _check_options(
    checked: CheckedApp, stack: CloudStack, forms: Sequence[str], inputs: Mapping[str, str]
) -> None:
    for form in forms:
        if form not in stack.forms:
            known = ", ".join(f"`{name}`" for name in stack.forms)
            message = f"a Stack for {stack.cloud} has no form `{form}`"
            raise InvalidInput(message, hint=f"There is {known}.")
    for name in sorted(set(inputs) - {item.name for item in checked.app.inputs}):
        raise InvalidInput(f"there is no input `{name}`", hint="See inputs.toml.")


def _render(
    checked: CheckedApp, built: DirectoryModel, stack: CloudStack, forms: Sequence[str]
) -> Mapping[str, StackFile]:
    """Return the files by name: those of the forms, and the pages that go with all."""
    rendered = stack.render(built.model)
    chosen = [file for file in rendered.files if not forms or file.form in {"", *forms}]
    guide = stack.write_guide(built.model, None)
    app = checked.app
    makers = [*app.components, *([app.sandbox] if app.sandbox else [])]
    report = build_report(built.model, map(freeze, makers))
    pages = [
        StackFile(
            INSTRUCTIONS, "text/markdown", write_instructions(built.model, guide, preview=True)
        ),
        StackFile(PERMISSIONS, "text/markdown", write_markdown(report)),
        StackFile("permissions.json", "application/json", write_json(report)),
    ]
    return {file.name: file for file in (*chosen, *pages)}


def _write_diagnostics(built: DirectoryModel, *, colour: bool) -> Styled:
    entries = [
        (
            item,
            built.sources[item.file].read_line(item.line) if item.file in built.sources else None,
        )
        for item in built.diagnostics
    ]
    return write_blocks(entries, colour=colour)


def _describe(
    built: DirectoryModel, out: Path, files: Mapping[str, StackFile]
) -> dict[str, object]:
    """Return the result as JSON."""
    written: list[Json] = [
        {
            "name": name,
            "form": file.form,
            "size": len(file.data),
            "sha256": hashlib.sha256(file.data).hexdigest(),
        }
        for name, file in files.items()
    ]
    return {
        "ok": built.is_ok,
        "app": built.model.app,
        "cloud": str(built.model.cloud),
        "region": built.model.account.region,
        "digest": digest_model(built.model) if built.is_ok else "",
        "folder": str(out),
        "files": written,
        "diagnostics": [
            {
                "severity": str(item.severity),
                "code": str(item.code),
                "file": item.file,
                "line": item.line,
                "column": item.column,
                "message": item.message,
                "hint": item.hint,
            }
            for item in built.diagnostics
        ],
    }
