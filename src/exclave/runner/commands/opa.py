"""Command lines of opa."""

from pathlib import Path

Argv = tuple[str, ...]


def evaluate(tool: str, *, policy: Path, document: Path, package: str, old_syntax: bool) -> Argv:
    """Evaluate all rules of a package on a document."""
    return (
        tool,
        "eval",
        "--format=json",
        *(("--v0-compatible",) if old_syntax else ()),
        f"--data={policy}",
        f"--input={document}",
        f"data.{package}",
    )
