"""Command lines of opa."""

from collections.abc import Sequence
from pathlib import Path

Argv = tuple[str, ...]


def evaluate(
    tool: str,
    *,
    policies: Sequence[Path],
    document: Path,
    query: str,
    limit_s: float,
    old_syntax: bool,
) -> Argv:
    """Evaluate a query of these policies on a document."""
    return (
        tool,
        "eval",
        "--format=json",
        f"--timeout={limit_s:g}s",
        *(("--v0-compatible",) if old_syntax else ()),
        *(f"--data={policy}" for policy in policies),
        f"--input={document}",
        query,
    )
