"""Command lines of helm, without values and credentials: other users can read command lines."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

Argv = tuple[str, ...]

HISTORY: Final = 10
"""How many revisions of a release Helm keeps."""
_SERVER_SIDE: Final = ("--server-side=true", "--force-conflicts", "--reset-values")
"""Without `--reset-values` an upgrade without values would silently use the previous ones."""


def build_dependencies(tool: str, chart: Path) -> Argv:
    """Fetch the dependencies of a chart: those of its lock file, if it has one."""
    return (tool, "dependency", "build", str(chart))


def lint(tool: str, chart: Path) -> Argv:
    """Check a chart; exits with 1 if it has errors."""
    return (tool, "lint", str(chart))


def package(tool: str, chart: Path, folder: Path) -> Argv:
    """Pack a chart into a folder, as Helm reads it: `.helmignore` followed, links resolved."""
    return (tool, "package", str(chart), "--destination", str(folder))


def render(
    tool: str,
    release: str,
    chart: Path,
    namespace: str,
    *,
    values: Path,
    take_ownership: bool = False,
) -> Argv:
    """Render a release with the cluster's help and change nothing; prints the release as JSON."""
    return (
        *(tool, "upgrade", "--install", release, str(chart), "--namespace", namespace),
        *("--create-namespace", "--dry-run=server", "--output=json"),
        *(*_SERVER_SIDE, "--skip-crds"),
        *_own(take_ownership=take_ownership),
        f"--values={values}",
    )


def template_with_server(
    tool: str, release: str, chart: Path, namespace: str, *, values: Path, is_upgrade: bool
) -> Argv:
    """Render a release with the cluster's help, whatever its records say."""
    return (
        *(tool, "template", release, str(chart), "--namespace", namespace, "--dry-run=server"),
        *(("--is-upgrade",) if is_upgrade else ()),
        f"--values={values}",
    )


def template(
    tool: str,
    release: str,
    chart: Path,
    namespace: str,
    *,
    values: Path,
    kube_version: str,
    api_versions: Iterable[str],
    is_upgrade: bool,
) -> Argv:
    """Render a release without the cluster, for kinds that it does not know yet."""
    return (
        *(tool, "template", release, str(chart), "--namespace", namespace),
        f"--kube-version={kube_version}",
        *(f"--api-versions={version}" for version in api_versions),
        *(("--is-upgrade",) if is_upgrade else ()),
        f"--values={values}",
    )


def upgrade(
    tool: str,
    release: str,
    chart: Path,
    namespace: str,
    *,
    values: Path,
    wait: str,
    timeout_s: int,
    labels: Mapping[str, str],
    take_ownership: bool = False,
) -> Argv:
    """Install or upgrade a release; the labels are on its record from the beginning."""
    joined = ",".join(f"{name}={value}" for name, value in labels.items())
    return (
        *(tool, "upgrade", "--install", release, str(chart), "--namespace", namespace),
        *("--output=json", *_SERVER_SIDE, "--skip-crds", f"--wait={wait}"),
        *(f"--timeout={timeout_s}s", f"--history-max={HISTORY}", f"--labels={joined}"),
        *_own(take_ownership=take_ownership),
        f"--values={values}",
    )


def uninstall(tool: str, release: str, namespace: str, *, timeout_s: int) -> Argv:
    """Remove a release and its records."""
    return (
        *(tool, "uninstall", release, "--namespace", namespace, "--wait=hookOnly"),
        *("--ignore-not-found", f"--timeout={timeout_s}s"),
    )


def _own(*, take_ownership: bool) -> Argv:
    return ("--take-ownership",) if take_ownership else ()


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
