"""The clusters that a customer names when they run a Stack."""

from pathlib import Path

import pytest

from exclave.base.clock import SystemClock
from exclave.base.errors import InvalidInput
from exclave.base.ids import SystemRandomness
from exclave.runner.doctor.clusters import check_clusters
from exclave.runner.kube.access.clusters import ClusterConnector, NamedKubeconfig
from exclave.runner.kube.access.named_kubeconfigs import (
    FILE,
    format_option,
    keep_kubeconfigs,
    parse_option,
    read_kubeconfigs,
)
from exclave.runner.kube.access.probe import ClusterProbe
from exclave.runner.kube.api.errors import AccessRefused
from tests.support.kubernetes import Cluster

CLOSED = """
current-context: c
contexts: [{name: c, context: {cluster: c}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
"""


def connect(data: Path) -> ClusterConnector:
    return ClusterConnector(SystemClock(), lambda _: None, lambda: read_kubeconfigs(data))


def test_a_name_a_file_and_a_context_are_told_apart(tmp_path: Path) -> None:
    plain, odd = tmp_path / "config", tmp_path / "a:b"
    for file in (plain, odd):
        file.write_text(CLOSED)

    assert parse_option(str(plain)) == ("default", NamedKubeconfig(plain))
    assert parse_option(f"{plain}:arn:x/y") == ("default", NamedKubeconfig(plain, "arn:x/y"))
    assert parse_option(f"east={plain}:c") == ("east", NamedKubeconfig(plain, "c"))
    assert parse_option(str(odd)) == ("default", NamedKubeconfig(odd))
    assert parse_option(format_option("east", NamedKubeconfig(plain, "c")))[0] == "east"
    with pytest.raises(InvalidInput, match="there is no file"):
        parse_option(f"east={tmp_path}/none:c")


def test_only_paths_are_kept_and_later_names_win(cluster: Cluster, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text(CLOSED)

    keep_kubeconfigs(tmp_path, [str(cluster.kubeconfig)])
    keep_kubeconfigs(tmp_path, [f"east={other}", f"default={other}:c"])
    keep_kubeconfigs(tmp_path, [])

    assert read_kubeconfigs(tmp_path) == {
        "default": NamedKubeconfig(other, "c"),
        "east": NamedKubeconfig(other),
    }
    assert cluster.token not in (tmp_path / FILE).read_text()
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0


def test_a_kubeconfig_that_no_job_could_use_is_refused_at_once(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(CLOSED)

    with pytest.raises(AccessRefused, match="no context `other`"):
        keep_kubeconfigs(tmp_path, [f"{file}:other"])

    assert read_kubeconfigs(tmp_path) == {}


async def test_the_report_says_which_clusters_can_be_reached(
    cluster: Cluster, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.write_text(CLOSED)
    keep_kubeconfigs(tmp_path, [str(cluster.kubeconfig)])
    probe = ClusterProbe(connect(tmp_path), SystemClock(), SystemRandomness())
    first = await probe.read()
    keep_kubeconfigs(tmp_path, [f"closed={closed}"])
    second = await probe.read()

    assert first["default"].reachable
    assert first["default"].version.startswith("v1.")
    assert not second["closed"].reachable
    assert "refused" in second["closed"].problem


async def test_the_doctor_checks_each_cluster(cluster: Cluster, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.write_text(CLOSED)
    clock, randomness = SystemClock(), SystemRandomness()
    none = await check_clusters(connect(tmp_path), clock, randomness)
    keep_kubeconfigs(tmp_path, [str(cluster.kubeconfig), f"closed={closed}"])
    both = await check_clusters(connect(tmp_path), clock, randomness)
    (tmp_path / FILE).write_text("{")
    broken = await check_clusters(connect(tmp_path), clock, randomness)

    assert [one.state for one in none] == ["ok"]
    assert [(one.name, one.state) for one in both] == [
        ("cluster closed", "fail"),
        ("cluster default", "ok"),
    ]
    assert both[0].fix
    assert [one.state for one in broken] == ["fail"]
