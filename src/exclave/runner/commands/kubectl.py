"""Command lines of kubectl."""

from collections.abc import Sequence
from pathlib import Path

Argv = tuple[str, ...]


def kustomize(tool: str, overlay: Path, *, restrict: bool, helm: str = "") -> Argv:
    """Print the objects of an overlay; `helm` is the program for charts in it, if they are allowed.

    With `restrict`, an overlay reads no files outside of its own folder.
    """
    restrictor = "LoadRestrictionsRootOnly" if restrict else "LoadRestrictionsNone"
    charts = ("--enable-helm", "--helm-command", helm) if helm else ()
    return (tool, "kustomize", str(overlay), "--load-restrictor", restrictor, *charts)


def exec_in(tool: str, namespace: str, pod: str, command: Sequence[str]) -> Argv:
    """Run a command in the first container of a pod; no shell reads it."""
    return (tool, "exec", "--namespace", namespace, pod, "--", *command)
