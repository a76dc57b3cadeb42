"""The module of a job on disk: backend override, variables by type, settings of the tool."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from exclave.base.hcl import quote
from exclave.runner.jobs.placeholders import Filler, is_placeholder
from exclave.runner.jobs.workspace import ROOM, write_private
from exclave.runner.outcomes import WorkFailed
from exclave.runner.terraform.hcl import is_expression, needs_value, read_variable_types
from exclave.wire.jobs import JsonValue, Reason
from exclave.wire.specs import TerraformSpec

MODULE = Path(ROOM) / "work" / "module"
"""The path of the module in the folder of a Terraform job's execution."""

OVERRIDE = "zzzz_exclave_backend_override.tf.json"
"""The override file, which Terraform reads last: it replaces the module's backend."""

POLICY_DIR = "kyverno_policy_dir"
"""The variable by which a sandbox asks for a folder of policies."""
NO_POLICIES = "exclave-no-policies"
_SANDBOX = "sandbox"

_RESERVED = "TF_"
_ALLOWED = "TF_VAR_"


@dataclass(frozen=True, slots=True)
class TerraformSettings:
    """Settings of all Terraform jobs of a runner."""

    plugin_cache: Path | None = None
    mirror: str = ""
    """A folder or an `https://` URL; if set, the only source of providers."""
    tool: Literal["terraform", "tofu"] = "terraform"
    """The program to use: terraform or tofu."""


def choose_tool(spec: TerraformSpec, settings: TerraformSettings) -> tuple[str, str]:
    """Return program and version; a version of Terraform means nothing for tofu."""
    if spec.tool == "terraform" and settings.tool != "terraform":
        return settings.tool, ""
    return spec.tool, spec.version


def write_override(module: Path) -> None:
    """Write the override file, which makes the runner's proxy the backend of the module."""
    write_private(module / OVERRIDE, b'{"terraform": {"backend": {"http": {}}}}\n')


def make_policy_folder(spec: TerraformSpec, module: Path) -> bool:
    """Make an empty folder for the policies of a sandbox that asks for one; return whether it does.

    Modules that were written for other platforms put policies of Kyverno into the cluster
    themselves, from a folder. Here they are planned and applied after the sandbox.
    """
    if spec.workspace != _SANDBOX or not needs_value(module, POLICY_DIR):
        return False
    if POLICY_DIR in spec.vars or f"{_ALLOWED}{POLICY_DIR}" in spec.env:
        return False
    (module / NO_POLICIES).mkdir(mode=0o700, exist_ok=True)
    return True


def write_cli_config(file: Path, settings: TerraformSettings) -> None:
    """Write the CLI configuration: where providers come from."""
    lines = ["disable_checkpoint = true"]
    if settings.plugin_cache is not None:
        settings.plugin_cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        lines.append(f"plugin_cache_dir = {quote(str(settings.plugin_cache))}")
        lines.append("plugin_cache_may_break_dependency_lock_file = true")
    if settings.mirror:
        remote = settings.mirror.startswith("https://")
        kind, key = ("network_mirror", "url") if remote else ("filesystem_mirror", "path")
        source = settings.mirror.rstrip("/") + "/" if remote else settings.mirror
        lines.append(
            f"provider_installation {{\n  {kind} {{\n    {key} = {quote(source)}\n  }}\n}}"
        )
    write_private(file, "\n".join([*lines, ""]).encode())


def write_variables(spec: TerraformSpec, filler: Filler, module: Path, folder: Path) -> list[Path]:
    """Write the variables, then the variable files in their order: the last value wins."""
    folder.mkdir(mode=0o700, exist_ok=True)
    files: list[Path] = []
    structured = read_variable_types(module)
    values: dict[str, JsonValue] = {}
    if make_policy_folder(spec, module):
        values[POLICY_DIR] = NO_POLICIES
    expressions: dict[str, str] = {}
    for name, text in spec.vars.items():
        if not structured.get(name, False):
            values[name] = filler.fill(text)
            continue
        value = _read_json(text, filler)
        if value is not None:
            values[name] = value[0]
        else:
            expressions[name] = _check_expression(name, filler.fill_hcl(text))
    if expressions:
        lines = [f"{name} = (\n{text}\n)\n" for name, text in expressions.items()]
        files.append(_write(folder / "expressions.tfvars", "".join(lines)))
    if values:
        files.append(_write(folder / "values.tfvars.json", json.dumps(values, ensure_ascii=False)))
    return files + [_write_file(folder, at, text, filler) for at, text in enumerate(spec.var_files)]


def choose_env(spec: TerraformSpec, filler: Filler) -> tuple[dict[str, str], list[str]]:
    """Return the job's environment, without variables that only the runner sets."""
    dropped = [name for name in spec.env if _is_reserved(name)]
    kept = {name: text for name, text in spec.env.items() if not _is_reserved(name)}
    return {name: filler.fill(text) for name, text in kept.items()}, dropped


def build_tool_env(rc: Path) -> Mapping[str, str]:
    """Return the environment variables that every command of the tool gets."""
    return {
        "TF_IN_AUTOMATION": "1",
        "TF_INPUT": "0",
        "TF_CLI_CONFIG_FILE": str(rc),
        "CHECKPOINT_DISABLE": "1",
    }


def _is_reserved(name: str) -> bool:
    return name.startswith(_RESERVED) and not name.startswith(_ALLOWED)


def _write_file(folder: Path, at: int, text: str, filler: Filler) -> Path:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict):
        filled = json.dumps(filler.fill_json(document), ensure_ascii=False)
        return _write(folder / f"file-{at:02d}.tfvars.json", filled)
    return _write(folder / f"file-{at:02d}.tfvars", filler.fill_hcl(text))


def _read_json(text: str, filler: Filler) -> tuple[JsonValue] | None:
    """Return the value of a structured variable: JSON, or a placeholder for JSON."""
    filled = filler.fill(text) if is_placeholder(text) else text
    try:
        value: JsonValue = json.loads(filled)
    except (ValueError, RecursionError):
        return None
    return (value,) if is_placeholder(text) else (filler.fill_json(value),)


def _check_expression(name: str, text: str) -> str:
    if not is_expression(text):
        message = f"the variable `{name}` is structured: give it as JSON or as an HCL expression"
        raise WorkFailed(Reason.SYNTAX, message)
    return text


def _write(file: Path, text: str) -> Path:
    write_private(file, text.encode())
    return file
