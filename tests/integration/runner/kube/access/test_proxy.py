"""The proxy between a job's commands and a real API server; kubectl is one of the commands."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from exclave.base.ids import SystemRandomness
from exclave.base.secrets import Secret
from exclave.runner.jobs.workspace import Workspace
from exclave.runner.kube.access.proxy import MAX_BODY, Change, ClusterProxy
from exclave.runner.kube.access.proxy_rules import Mode
from exclave.runner.kube.access.tls import make_tls
from exclave.runner.kube.access.tokens import FixedToken
from exclave.runner.kube.api.connection import Connection, Credential, NoCredential
from tests.support.kubernetes import Cluster
from tests.support.kubernetes_tools import need_kubectl
from tests.support.scripted_api import Reply, RotatingToken, ScriptedApi, refuse, say


def connect(cluster: Cluster, credential: Credential | None = None) -> Connection:
    token = credential or FixedToken(Secret(cluster.token))
    return Connection(cluster.server, make_tls(cluster.ca), token)


@asynccontextmanager
async def open_proxy(
    connection: Connection, mode: Mode = Mode.WRITE
) -> AsyncIterator[tuple[ClusterProxy, httpx.AsyncClient, list[Change]]]:
    changes: list[Change] = []
    proxy = ClusterProxy(connection, SystemRandomness(), mode=mode, note=changes.append)
    async with proxy, httpx.AsyncClient(base_url=proxy.url, trust_env=False, timeout=30) as command:
        yield proxy, command, changes


async def run_kubectl(config: Path, *words: str) -> tuple[int, str]:
    env = {"PATH": os.environ["PATH"], "KUBECONFIG": str(config), "HOME": str(config.parent)}
    process = await asyncio.create_subprocess_exec(
        str(need_kubectl()),
        *words,
        env=env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode or 0, printed.decode()


async def test_a_command_works_with_a_kubeconfig_that_has_no_credential(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    async with open_proxy(connect(cluster)) as (proxy, _, changes):
        config = proxy.write_kubeconfig(Workspace(tmp_path), namespace)
        created = await run_kubectl(config, "create", "configmap", "c", "--from-literal=a=1")
        read = await run_kubectl(config, "get", "configmap", "c", "-o", "jsonpath={.data.a}")
        mode, text = config.stat().st_mode & 0o777, config.read_text()

    assert (created[0], read) == (0, (0, "1"))
    assert mode == 0o600
    assert cluster.token not in text
    assert json.loads(text)["users"] == [{"name": "exclave", "user": {}}]
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    assert changes == [Change("POST", path), Change("POST", path, 201)]


async def test_a_plan_cannot_change_anything(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    body = {"metadata": {"name": "c"}}
    async with open_proxy(connect(cluster), Mode.READ) as (proxy, command, changes):
        config = proxy.write_kubeconfig(Workspace(tmp_path), namespace)
        code, printed = await run_kubectl(config, "create", "configmap", "c")
        dry = await command.post(path, params={"dryRun": "All"}, json=body)
        review = await command.post(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            json={"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}},
        )
        read = await command.get(path)
        # The options of a DELETE are in its body: the query would be ignored by the server.
        namespace_path = f"/api/v1/namespaces/{namespace}"
        deleted = await command.delete(namespace_path, params={"dryRun": "All"})

    assert code == 1
    assert "a plan changes nothing" in printed
    assert (dry.status_code, review.status_code, read.status_code) == (201, 201, 200)
    assert deleted.status_code == 403
    assert (proxy.refused, changes) == (2, [])
    assert not cluster.exists(f"{path}/c")
    assert "deletionTimestamp" not in str(cluster.request("GET", namespace_path))


async def test_the_command_cannot_choose_who_it_is(cluster: Cluster) -> None:
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    async with open_proxy(connect(cluster)) as (_, command, _):
        mine = await command.post(path, json={})
        forged = await command.post(
            path,
            json={},
            headers={"Authorization": "Bearer x", "Impersonate-User": "system:anonymous"},
        )

    assert forged.json()["status"] == mine.json()["status"]
    assert forged.status_code == 201


async def test_without_the_secret_there_is_no_answer(cluster: Cluster) -> None:
    async with open_proxy(connect(cluster)) as (proxy, _, _):
        root = proxy.url.rpartition("/")[0]
        async with httpx.AsyncClient(base_url=root, trust_env=False) as stranger:
            wrong = await stranger.get(f"/{'0' * 64}/version")
            none = await stranger.get("/version")

    assert (wrong.status_code, none.status_code) == (401, 401)


async def test_events_of_a_watch_arrive_one_by_one(cluster: Cluster, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    async with open_proxy(connect(cluster)) as (_, command, _):
        query = {"watch": "1", "fieldSelector": "metadata.name=c"}
        async with asyncio.timeout(20), command.stream("GET", path, params=query) as watch:
            lines = watch.aiter_lines()
            await command.post(path, json={"metadata": {"name": "c"}})
            first = json.loads(await anext(lines))
            await command.delete(f"{path}/c")
            second = json.loads(await anext(lines))

    assert (first["type"], second["type"]) == ("ADDED", "DELETED")


async def test_a_closed_proxy_ends_watches_and_refuses_the_rest(
    cluster: Cluster, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    async with open_proxy(connect(cluster)) as (proxy, command, _):
        async with command.stream("GET", path, params={"watch": "1"}) as watch:
            await proxy.close()
            with pytest.raises(httpx.RemoteProtocolError):
                async with asyncio.timeout(20):
                    await watch.aread()
        late = await command.get(path)

    assert late.status_code == 401
    assert late.json()["kind"] == "Status"


async def test_a_token_that_expires_is_renewed_for_the_command(cluster: Cluster) -> None:
    rotating = RotatingToken("expired", cluster.token)
    async with open_proxy(connect(cluster, rotating)) as (_, command, _):
        reply = await command.get("/api/v1/namespaces/kube-system")

    assert reply.status_code == 200
    assert rotating.tokens == [cluster.token]


async def test_the_client_certificate_is_the_proxys_business(cluster: Cluster) -> None:
    certificate = (cluster.folder / "client.crt").read_text()
    key = Secret((cluster.folder / "client.key").read_text())
    connection = Connection(
        cluster.server, make_tls(cluster.ca, (certificate, key)), NoCredential()
    )
    async with open_proxy(connection) as (_, command, _):
        reply = await command.get("/api/v1/namespaces/kube-system")

    assert reply.status_code == 200


async def test_bodies_and_heads_have_a_largest_size(cluster: Cluster) -> None:
    async with open_proxy(connect(cluster)) as (_, command, changes):
        large = await command.post("/api/v1/namespaces", content=b"x" * (MAX_BODY + 1))
        with pytest.raises(httpx.TransportError):
            await command.get("/version", headers={"x-long": "x" * (1 << 17)})

    assert large.status_code == 413
    assert changes == []


async def test_a_cluster_that_is_away_is_a_bad_gateway() -> None:
    async with ScriptedApi({}) as api:
        address = api.url
    async with open_proxy(Connection(address, None, NoCredential())) as (_, command, _):
        reply = await command.get("/version")

    assert reply.status_code == 502
    assert "no answer from the cluster" in reply.json()["message"]


async def test_an_upgrade_becomes_a_connection_both_ways() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"upgrade: spdy/3.1" in head.lower()
        assert b"authorization: bearer t" in head.lower()
        writer.write(
            b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nhi "
        )
        while data := await reader.read(100):
            writer.write(data.upper())
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with open_proxy(Connection(address, None, RotatingToken("t"))) as (proxy, _, changes):
        host, _, secret = proxy.url.removeprefix("http://").partition("/")
        reader, writer = await asyncio.open_connection("127.0.0.1", int(host.partition(":")[2]))
        path = "/api/v1/namespaces/n/pods/p/exec"
        head = f"POST /{secret}{path}?command=ls HTTP/1.1\r\nHost: x\r\n"
        writer.write(f"{head}Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n".encode())
        async with asyncio.timeout(20):
            answer = await reader.readuntil(b"hi ")
            writer.write(b"there")
            echoed = await reader.readexactly(5)
        writer.close()
        await writer.wait_closed()
    server.close()

    assert answer.startswith(b"HTTP/1.1 101")
    assert echoed == b"THERE"
    assert changes[0] == Change("POST", path)


@pytest.mark.parametrize("reply", [Reply(500), refuse(503, "ServiceUnavailable", "busy"), say({})])
async def test_answers_pass_as_they_are(reply: Reply) -> None:
    async with (
        ScriptedApi({"/version": [reply]}) as api,
        open_proxy(Connection(api.url, None, NoCredential())) as (_, command, _),
    ):
        passed = await command.get("/version")
        again = await command.get("/version")

    assert (passed.status_code, passed.content) == (reply.status, reply.body)
    assert again.content == reply.body
