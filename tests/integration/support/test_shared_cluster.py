"""One cluster for all processes of a test run: shared, on loopback, and gone with its users."""

import ipaddress
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.kubernetes import ROOT, Cluster, share_cluster
from tests.support.kubernetes_tools import need_helm, need_helm3, need_kubectl
from tests.support.tools import need_kubebed

USER = """
import sys
from pathlib import Path
from tests.support.kubernetes import share_cluster
with share_cluster(Path(sys.argv[1])) as cluster:
    print(cluster.server, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    need_kubebed()
    return tmp_path / "shared"


@contextmanager
def use(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Use the cluster in a process of its own, until it is killed."""
    argv = [sys.executable, "-c", USER, str(folder)]
    with subprocess.Popen(
        argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def read_server(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def wait_until(is_so: Callable[[], bool], within_s: float = 30) -> None:
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def list_processes(folder: Path) -> list[int]:
    """Return the processes of the cluster in a folder, its node included."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != str(os.getpid()):
            try:
                words = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if f"{folder}/cluster".encode() in words:
                found.append(int(entry.name))
    return found


def list_listeners(pids: list[int]) -> set[str]:
    """Return the addresses on which the processes listen."""
    inodes = set()
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            inodes.add(link.readlink().name.removeprefix("socket:[").removesuffix("]"))
    found = set()
    for family in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{family}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.add(_read_address(fields[1].split(":")[0]))
    return found


def _read_address(text: str) -> str:
    words = [bytes.fromhex(text[start : start + 8])[::-1] for start in range(0, len(text), 8)]
    return str(ipaddress.ip_address(b"".join(words)))


def test_processes_share_a_cluster_that_ends_with_the_last_of_them(folder: Path) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(use(folder))
        second = stack.enter_context(use(folder))
        servers = {read_server(first), read_server(second)}
        first.send_signal(signal.SIGKILL)
        first.wait()
        with share_cluster(folder) as third:
            servers.add(third.server)
            answered = third.exists("/readyz")
            processes = list_processes(folder)
        second.send_signal(signal.SIGKILL)
        second.wait()

    wait_until(lambda: not folder.exists() and not list_processes(folder))
    assert (len(servers), answered) == (1, True)
    assert len(processes) >= 5


def test_a_cluster_that_was_killed_is_replaced(folder: Path) -> None:
    with share_cluster(folder) as cluster:
        for pid in list_processes(folder):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not list_processes(folder))

        with share_cluster(folder) as again:
            assert again.exists("/api/v1/nodes/node-1")
            assert again.server != cluster.server or again.token != cluster.token


def test_the_cluster_listens_on_loopback_only(cluster: Cluster) -> None:
    listeners = list_listeners(list_processes(cluster.folder.parent))

    assert listeners == {"127.0.0.1"}


def test_a_client_certificate_opens_the_cluster(cluster: Cluster, tmp_path: Path) -> None:
    argv = [
        str(need_kubectl()),
        f"--server={cluster.server}",
        f"--certificate-authority={cluster.folder}/ca.crt",
        f"--client-certificate={cluster.folder}/client.crt",
        f"--client-key={cluster.folder}/client.key",
        *("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"),
    ]
    done = subprocess.run(
        argv, env={"HOME": str(tmp_path)}, capture_output=True, text=True, check=True
    )

    assert done.stdout == "certificate-admin"


@pytest.mark.parametrize("need", [need_helm, need_helm3])
def test_helm_installs_a_chart_and_waits_for_it(
    cluster: Cluster, namespace: str, tmp_path: Path, need: Callable[[], Path]
) -> None:
    helm = str(need())
    env = cluster.environment
    subprocess.run([helm, "create", "app"], cwd=tmp_path, env=env, check=True, capture_output=True)

    argv = [helm, "install", "app", "app", "-n", namespace, "--wait", "--timeout", "60s"]
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    deployment = f"/apis/apps/v1/namespaces/{namespace}/deployments/app"
    assert cluster.exists(deployment)
