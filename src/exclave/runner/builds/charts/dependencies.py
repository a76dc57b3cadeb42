"""Dependencies of a chart: locked where it has a lock file, fetched by Helm into its folder."""

import asyncio
import base64
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

from exclave.base.json_values import JsonObject
from exclave.runner.builds.charts.chart_files import LOCK_FILES, Chart, Dependency, read_chart
from exclave.runner.builds.charts.downloads import ChartDownloads, make_login
from exclave.runner.builds.recipe import BuildWork
from exclave.runner.commands import helm
from exclave.runner.outcomes import WorkFailed
from exclave.runner.processes.child import Command
from exclave.wire.jobs import Reason

_ERROR = re.compile(r"^Error: (.*)", re.MULTILINE | re.DOTALL)
_OUT_OF_SYNC = "out of sync"


async def add_dependencies(
    work: BuildWork, downloads: ChartDownloads, tool: str, chart: Chart, root: Path
) -> tuple[JsonObject, ...]:
    """Put what the chart needs into its folder `charts`; return descriptions of what was taken."""
    context = work.context
    missing = [needed for needed in chart.dependencies if not _is_vendored(chart, needed)]
    if not missing:
        return ()
    named = (*chart.dependencies, *(chart.locked or ()))
    await asyncio.to_thread(_check_local, chart, named, root)
    for needed in named:
        if not needed.repository.startswith("file://"):
            await downloads.check_address(needed.repository)
    if chart.locked is None:
        names = ", ".join(needed.name for needed in missing)
        context.log.system(
            f"warning: the chart has no lock file: the newest fitting versions of {names} are taken"
            " (run `helm dependency update` and commit `Chart.lock`)"
        )
    home = context.workspace.home
    context.workspace.write(home / "repositories.yaml", _write_repositories(work, downloads, named))
    context.workspace.write(home / "registry.json", _write_registries(work, downloads, named))
    env = context.build_env(helm.build_helm_env(home))
    argv = helm.build_dependencies(tool, chart.folder)
    command = Command(argv, env, context.workspace.work)
    printed = await context.capture(command, name="`helm dependency build`", quiet=False)
    if printed.code != 0:
        raise _explain(printed.stderr + printed.stdout)
    return await asyncio.to_thread(_describe_taken, work, chart, root)


def _is_vendored(chart: Chart, needed: Dependency) -> bool:
    folder = chart.folder / "charts"
    return (folder / needed.name / "Chart.yaml").is_file() or any(
        folder.glob(f"{needed.name}-[0-9v]*.tgz")
    )


def _check_local(chart: Chart, named: Iterable[Dependency], root: Path) -> None:
    """Raise if a dependency is named by something that only the author's machine has."""
    for needed in named:
        url = needed.repository
        if not url:
            _refuse(f"the dependency `{needed.name}` has no `repository` and is not in `charts/`")
        elif url.startswith("file://"):
            folder = (chart.folder / url.removeprefix("file://")).resolve()
            if not folder.is_relative_to(root.resolve()) or not folder.is_dir():
                _refuse(
                    f"the dependency `{needed.name}` is `{url}`, which is not in the source: only"
                    " the folder that the component names is fetched, so name one above both"
                )
        elif url.startswith(("@", "alias:")):
            _refuse(
                f"the dependency `{needed.name}` names the repository `{url}` by an alias, which"
                " only your own machine knows: write its address"
            )


def _write_repositories(
    work: BuildWork, downloads: ChartDownloads, named: Iterable[Dependency]
) -> bytes:
    """Return the file of repositories, which Helm has to know before it fetches from them."""
    urls = {needed.repository for needed in named if needed.repository.startswith("http")}
    entries = []
    for number, url in enumerate(sorted(urls)):
        login = make_login(downloads.find_credential(work.context, url))
        entry: dict[str, object] = {"name": f"r{number}", "url": url}
        if login is not None:
            entry |= {"username": login.username, "password": login.password.reveal()}
        if downloads.link.ca_bundle is not None:
            entry["caFile"] = str(downloads.link.ca_bundle)
        entries.append(entry)
    # JSON is YAML as well.
    return json.dumps({"apiVersion": "", "repositories": entries}).encode()


def _write_registries(
    work: BuildWork, downloads: ChartDownloads, named: Iterable[Dependency]
) -> bytes:
    """Return the file of registry passwords in the form that Docker and Helm share."""
    auths = {}
    for needed in named:
        if needed.repository.startswith("oci://"):
            login = make_login(downloads.find_credential(work.context, needed.repository))
            if login is not None:
                both = f"{login.username}:{login.password.reveal()}".encode()
                auths[urlsplit(needed.repository).netloc] = {
                    "auth": base64.b64encode(both).decode()
                }
    return json.dumps({"auths": auths}).encode()


def _describe_taken(work: BuildWork, chart: Chart, root: Path) -> tuple[JsonObject, ...]:
    """Read what Helm resolved from the lock file, which it writes if there was none."""
    with work.context.workspace.touch():
        taken = read_chart(chart.folder, root).locked or ()
        if chart.locked is None:
            # The time in it would give every build another digest.
            for name in LOCK_FILES:
                (chart.folder / name).unlink(missing_ok=True)
    for needed in taken:
        work.context.log.system(f"{needed.name} {needed.version} from {needed.repository}")
    return tuple(
        {"name": f"dependency {needed.name} {needed.version}", "uri": needed.repository}
        for needed in taken
    )


def _explain(printed: str) -> WorkFailed:
    match = _ERROR.search(printed)
    complaint = (match[1] if match else printed).strip()
    if _OUT_OF_SYNC in complaint:
        message = (
            f"{complaint.splitlines()[0]}: `Chart.lock` names other dependencies than `Chart.yaml`;"
            " run `helm dependency update` and commit the lock file"
        )
        return WorkFailed(Reason.SOURCE_INVALID, message)
    passing = any(
        word in complaint for word in ("dial tcp", "timeout", "connection refused", "lookup")
    )
    reason = Reason.NETWORK if passing else Reason.SOURCE_INVALID
    return WorkFailed(reason, f"the dependencies cannot be fetched: {complaint[-1000:]}")


def _refuse(message: str) -> NoReturn:
    raise WorkFailed(Reason.SOURCE_INVALID, message)
