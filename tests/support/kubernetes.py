"""A real Kubernetes API server for tests: one cluster per test run, one namespace per test.

etcd, API server, controllers and scheduler are real (`tests/support/kubebed`); the node is not
(`kubelet.py`). All processes of a test run share the cluster. Each holds a shared lock on one file,
and the cluster ends when nobody holds it any more, also after `kill -9`.
"""

import contextlib
import fcntl
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO
from uuid import uuid4

import httpx
import pytest

from exclave.base.json_values import Json, JsonObject, parse_object, require_text
from tests.support.tools import need_kubebed

ROOT = Path(__file__).parents[2]
ACCOUNT_S = 30.0


@dataclass(frozen=True)
class Cluster:
    """Where the cluster is and what opens it."""

    server: str
    token: str
    """Of an administrator."""
    folder: Path
    """Holds `ca.crt`, `client.crt`, `client.key` and `kubeconfig`."""

    @property
    def kubeconfig(self) -> Path:
        """A file that lets kubectl and helm in as administrators, by token."""
        return self.folder / "kubeconfig"

    @property
    def ca(self) -> str:
        """The certificate that the server's certificate is signed by, as PEM."""
        return (self.folder / "ca.crt").read_text()

    @property
    def environment(self) -> dict[str, str]:
        """Variables for kubectl and helm, which find nothing of the user of this machine."""
        homes = {f"HELM_{kind}_HOME": f"{self.folder}/helm" for kind in ("CACHE", "CONFIG", "DATA")}
        # Without a home, kubectl keeps what it knows about the server in the current folder.
        homes["HOME"] = str(self.folder)
        return {"PATH": os.environ["PATH"], "KUBECONFIG": str(self.kubeconfig), **homes}

    @cached_property
    def api(self) -> httpx.Client:
        """A client that is let in, for what a test arranges and asserts."""
        return httpx.Client(
            base_url=self.server,
            verify=ssl.create_default_context(cadata=self.ca),
            headers={"Authorization": f"Bearer {self.token}"},
            trust_env=False,
        )

    def request(self, method: str, path: str, body: Json = None) -> JsonObject:
        """Return the answer to a request that has to succeed."""
        answer = self.api.request(method, path, json=body)
        assert answer.is_success, answer.text
        return parse_object(answer.content, path)

    def exists(self, path: str) -> bool:
        """Return whether there is an object at this path."""
        return self.api.get(path).is_success


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """The cluster of this test run."""
    with share_cluster(find_folder()) as shared:
        yield shared


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace of this test alone; it is removed afterwards, without waiting for it."""
    with open_namespace(cluster) as name:
        yield name


@contextlib.contextmanager
def open_namespace(cluster: Cluster) -> Iterator[str]:
    """Lend a new namespace in which pods can be created."""
    name = f"test-{uuid4().hex[:12]}"
    path = f"/api/v1/namespaces/{name}"
    cluster.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    deadline = time.monotonic() + ACCOUNT_S
    while not cluster.exists(f"{path}/serviceaccounts/default"):
        assert time.monotonic() < deadline, "no controller creates the default ServiceAccount"
        time.sleep(0.01)
    try:
        yield name
    finally:
        cluster.api.delete(path)


@contextlib.contextmanager
def share_cluster(folder: Path) -> Iterator[Cluster]:
    """Lend the cluster of a folder, started if nobody has done so; it ends with its last user."""
    with _become_user(folder):
        with _hold(folder / "start", fcntl.LOCK_EX):
            cluster = _find_cluster(folder) or _start_cluster(folder)
        with contextlib.closing(cluster.api):
            yield cluster


def find_folder() -> Path:
    """Return the folder that the processes of this test run share."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or f"pid-{os.getpid()}"
    return Path(tempfile.gettempdir()) / f"exclave-kubebed-{run}"


@contextlib.contextmanager
def _become_user(folder: Path) -> Iterator[None]:
    """Keep the cluster of a folder alive. One that is just ending is waited for and left alone."""
    file = folder / "users"
    while True:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError), _hold(file, fcntl.LOCK_SH) as users:
            if file.stat().st_ino == os.fstat(users.fileno()).st_ino:
                yield
                return


@contextlib.contextmanager
def _hold(file: Path, how: int) -> Iterator[IO[bytes]]:
    with file.open("ab") as opened:
        fcntl.flock(opened, how)
        yield opened


def _find_cluster(folder: Path) -> Cluster | None:
    """Return the cluster that runs in the folder, if it does."""
    data = folder / "cluster"
    try:
        facts = parse_object((data / "bed.json").read_bytes(), "bed.json")
    except FileNotFoundError:
        return None
    cluster = Cluster(
        require_text(facts["server"], "server"), require_text(facts["token"], "token"), data
    )
    with contextlib.suppress(httpx.HTTPError):
        if cluster.exists("/readyz"):
            return cluster
    return None


def _start_cluster(folder: Path) -> Cluster:
    """Start a cluster that is no child of the tests: it stays until all of them have ended."""
    log = folder / "log"
    argv = [str(need_kubebed()), "--detach", f"--dir={folder}/cluster", f"--users={folder}/users"]
    argv += ["--", sys.executable, "-m", "tests.support.kubelet"]
    with log.open("ab") as errors:
        done = subprocess.run(argv, cwd=ROOT, stdin=subprocess.DEVNULL, stderr=errors, check=False)
    cluster = _find_cluster(folder) if done.returncode == 0 else None
    if cluster is None:
        raise RuntimeError(f"the cluster did not start:\n{log.read_text()[-3000:]}")
    return cluster
