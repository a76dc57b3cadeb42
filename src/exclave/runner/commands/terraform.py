"""Command lines of terraform and tofu, without values: other users can read command lines."""

from collections.abc import Sequence
from pathlib import Path

Argv = tuple[str, ...]


def init(tool: str) -> Argv:
    """Prepare the module: providers, modules, backend."""
    return (tool, "init", "-input=false", "-no-color")


def plan(tool: str, *, out: Path, var_files: Sequence[Path], destroy: bool) -> Argv:
    """Plan without the lock: the job's lane already excludes other writers."""
    return (
        tool,
        "plan",
        "-input=false",
        "-lock=false",
        "-json",
        *(("-destroy",) if destroy else ()),
        *(f"-var-file={file}" for file in var_files),
        f"-out={out}",
    )


def show(tool: str, plan_file: Path) -> Argv:
    """Read a saved plan as JSON."""
    return (tool, "show", "-json", str(plan_file))


def apply(tool: str, plan_file: Path) -> Argv:
    """Apply exactly the approved plan: no variables, no targets."""
    return (tool, "apply", "-input=false", "-json", str(plan_file))
