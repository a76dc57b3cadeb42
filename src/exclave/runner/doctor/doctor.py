"""Diagnoses why a runner does not work, hop by hop, with a fix for each finding."""

from collections.abc import Awaitable, Callable

from exclave.base.clock import Clock
from exclave.base.ids import Randomness
from exclave.client.runner import HttpRunnerApi
from exclave.runner.config import RunnerConfig
from exclave.runner.control_plane.access_token import Session
from exclave.runner.control_plane.identity import IDENTITY, load_identity, load_key
from exclave.runner.data_folder import DataFolder, DataFolderInUse
from exclave.runner.doctor.clusters import check_clusters
from exclave.runner.doctor.findings import Finding as Finding
from exclave.runner.doctor.findings import ok, within
from exclave.runner.doctor.machine import (
    check_disk,
    check_folder,
    check_identity,
    check_isolation,
)
from exclave.runner.doctor.network import check_network
from exclave.runner.doctor.tools import check_tools
from exclave.runner.kube.access.clusters import ClusterConnector

_TOKEN = "token"  # noqa: S105 - the name of a check


async def diagnose(
    config: RunnerConfig, connector: ClusterConnector, clock: Clock, randomness: Randomness
) -> list[Finding]:
    """Check everything from the data folder to the token; never changes the folder's identity."""
    findings = [
        check_folder(config),
        check_disk(config),
        check_identity(config),
        check_isolation(config),
        *await check_network(config, clock),
    ]
    reachable = all(finding.state != "fail" for finding in findings)
    if reachable and (config.data / IDENTITY).exists():
        findings.append(await within(_TOKEN, _build_token_check(config, clock, randomness)))
    clusters = await check_clusters(connector, clock, randomness)
    return [*findings, *clusters, *await check_tools()]


def _build_token_check(
    config: RunnerConfig, clock: Clock, randomness: Randomness
) -> Callable[[], Awaitable[Finding]]:
    async def check() -> Finding:
        try:
            disk = DataFolder(config.data)
        except DataFolderInUse:
            return ok(_TOKEN, "not tried: a runner process holds the identity right now")
        api = HttpRunnerApi(config.link)
        try:
            session = Session(
                api,
                disk,
                load_identity(config.data),
                load_key(config.data),
                clock=clock,
                randomness=randomness,
            )
            await session.call(_accept_token)
        finally:
            await api.close()
            disk.close()
        return ok(_TOKEN, "the control plane gives this runner access")

    return check


async def _accept_token(token: str) -> None:
    del token
