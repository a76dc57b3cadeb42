import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from exclave.base.clock import SystemClock
from exclave.base.ids import SystemRandomness
from exclave.runner.config import RunnerConfig
from exclave.runner.doctor.doctor import Finding, diagnose
from exclave.runner.kube.access.clusters import ClusterConnector
from exclave.runner.kube.access.named_kubeconfigs import read_kubeconfigs
from tests.support.certificates import make_certificate


async def examine(config: RunnerConfig) -> dict[str, Finding]:
    connector = ClusterConnector(
        SystemClock(), lambda _: None, lambda: read_kubeconfigs(config.data)
    )
    findings = await diagnose(config, connector, SystemClock(), SystemRandomness())
    return {one.name: one for one in findings}


@asynccontextmanager
async def serve(
    *, tls: ssl.SSLContext | None = None, ahead: timedelta = timedelta(0), status: int = 200
) -> AsyncIterator[int]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            date = format_datetime(datetime.now(UTC) + ahead, usegmt=True)
            writer.write(
                f"HTTP/1.1 {status} X\r\nDate: {date}\r\nContent-Length: 0\r\n\r\n".encode()
            )
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1]
        await asyncio.sleep(0.05)


async def test_a_closed_port_is_named_and_ends_the_search(tmp_path: Path) -> None:
    found = await examine(RunnerConfig(tmp_path, "http://127.0.0.1:1"))

    assert (found["dns"].state, found["tcp"].state) == ("ok", "fail")
    assert "http" not in found
    assert found["tcp"].fix


async def test_an_unknown_name_is_named(tmp_path: Path) -> None:
    found = await examine(RunnerConfig(tmp_path, "https://does-not-exist.invalid"))

    assert found["dns"].state == "fail"
    assert "DNS" in found["dns"].fix


async def test_an_address_that_is_none_is_named(tmp_path: Path) -> None:
    found = await examine(RunnerConfig(tmp_path, "control.example:8701"))

    assert found["address"].state == "fail"


async def test_a_dead_proxy_is_named(tmp_path: Path) -> None:
    config = RunnerConfig(tmp_path, "https://control.example", proxy="http://127.0.0.1:1")

    assert (await examine(config))["proxy"].state == "fail"


async def test_a_certificate_of_a_private_ca_needs_its_bundle(tmp_path: Path) -> None:
    bundle, tls = make_certificate(tmp_path)

    async with serve(tls=tls) as port:
        url = f"https://127.0.0.1:{port}"
        without = await examine(RunnerConfig(tmp_path, url))
        with_it = await examine(RunnerConfig(tmp_path, url, ca_bundle=bundle))

    assert without["tls"].state == "fail"
    assert "CA bundle" in without["tls"].fix
    assert (with_it["tls"].state, with_it["http"].state) == ("ok", "ok")


async def test_a_bundle_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    config = RunnerConfig(tmp_path, "https://control.example", ca_bundle=tmp_path / "missing.pem")

    assert (await examine(config))["tls"].state == "fail"


@pytest.mark.parametrize(
    ("seconds", "state"), [(0, "ok"), (30, "warn"), (600, "fail"), (-600, "fail")]
)
async def test_a_wrong_clock_is_named(tmp_path: Path, seconds: int, state: str) -> None:
    async with serve(ahead=timedelta(seconds=seconds)) as port:
        found = await examine(RunnerConfig(tmp_path, f"http://127.0.0.1:{port}"))

    assert found["clock"].state == state


async def test_another_service_at_the_address_is_named(tmp_path: Path) -> None:
    async with serve(status=404) as port:
        found = await examine(RunnerConfig(tmp_path, f"http://127.0.0.1:{port}"))

    assert found["http"].state == "fail"


async def test_folder_disk_identity_and_tools_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    config = RunnerConfig(tmp_path / "none", "http://127.0.0.1:1", keep_free_bytes=1 << 60)

    found = await examine(config)

    assert (found["data folder"].state, found["disk"].state) == ("fail", "fail")
    assert found["identity"].state == "fail"
    tools = ["git", "terraform", "tofu", "helm", "kubectl"]
    assert all(found[f"tool {name}"].state == "warn" for name in tools)
    assert all(one.fix for one in found.values() if one.state != "ok")
