"""Command lines of helm, without values and credentials: other users can read command lines."""

from pathlib import Path

Argv = tuple[str, ...]


def build_dependencies(tool: str, chart: Path) -> Argv:
    """Fetch the dependencies of a chart: those of its lock file, if it has one."""
    return (tool, "dependency", "build", str(chart))


def lint(tool: str, chart: Path) -> Argv:
    """Check a chart; exits with 1 if it has errors."""
    return (tool, "lint", str(chart))


def package(tool: str, chart: Path, folder: Path) -> Argv:
    """Pack a chart into a folder, as Helm reads it: `.helmignore` followed, links resolved."""
    return (tool, "package", str(chart), "--destination", str(folder))


def build_helm_env(home: Path) -> dict[str, str]:
    """Return the variables that keep all of Helm's files in a folder of the job."""
    return {
        "HELM_CACHE_HOME": str(home / "cache"),
        "HELM_CONFIG_HOME": str(home / "config"),
        "HELM_DATA_HOME": str(home / "data"),
        "HELM_REPOSITORY_CONFIG": str(home / "repositories.yaml"),
        "HELM_REGISTRY_CONFIG": str(home / "registry.json"),
        "HELM_PLUGINS": str(home / "plugins"),
    }
