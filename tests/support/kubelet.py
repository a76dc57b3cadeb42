"""A kubelet that runs nothing: it is a node of the test cluster and reports what pods would do.

`python -m tests.support.kubelet` finds its cluster by `KUBECONFIG` and ends with the program that
started it. What it reports about a pod is in `pods.py`. Logs can be read (`kubectl logs`), and
`kubectl exec` ends as an annotation of the pod says (`kubelet_exec.py`); `port-forward` is not served.
"""

import asyncio
import base64
import contextlib
import itertools
import json
import os
import ssl
import sys
import tempfile
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx

from exclave.base.json_values import Json, JsonObject
from tests.support.certificates import make_certificate
from tests.support.kubelet_exec import read_result, serve_exec
from tests.support.pods import Failure, Pod, list_events, make_started, make_status, now

NODE = "node-1"
HEARTBEAT_S = 20.0
RELIST_S = 0.2
CAPACITY: JsonObject = {
    "cpu": "1000",
    "memory": "1000Gi",
    "pods": "10000",
    "ephemeral-storage": "1Ti",
}
MERGE = {"Content-Type": "application/merge-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}


class Kubelet:
    """One node of the cluster and the pods that are bound to it."""

    def __init__(self, api: httpx.AsyncClient) -> None:
        self._api = api
        self._pods: dict[tuple[str, str], Pod] = {}
        self._reported: dict[str, Failure | None] = {}
        self._addresses = map(_make_address, itertools.count(1))
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Be a node until the process ends."""
        with tempfile.TemporaryDirectory() as folder:
            _, tls = make_certificate(Path(folder))
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        await self._join(server.sockets[0].getsockname()[1])
        await asyncio.gather(self._beat(), self._follow())

    async def _join(self, port: int) -> None:
        labels = {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux"}
        labels |= {"kubernetes.io/arch": "amd64"}
        node: JsonObject = {"metadata": {"name": NODE, "labels": labels}}
        await self._call("POST", "/api/v1/nodes", node)
        info = {
            "kubeletVersion": "v1.34.0-fake",
            "architecture": "amd64",
            "operatingSystem": "linux",
        }
        info |= dict.fromkeys(
            ("machineID", "systemUUID", "bootID", "kernelVersion", "osImage"), "none"
        )
        info |= {"containerRuntimeVersion": "none://0", "kubeProxyVersion": ""}
        await self._report_node(
            {
                "capacity": CAPACITY,
                "allocatable": CAPACITY,
                "nodeInfo": info,
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            }
        )
        # Admission marks a new node as not ready, and the controller that removes the mark is slow.
        await self._call("PATCH", f"/api/v1/nodes/{NODE}", {"spec": {"taints": None}}, MERGE)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            await self._report_node({})

    async def _report_node(self, facts: JsonObject) -> None:
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
            "lastHeartbeatTime": now(),
            "lastTransitionTime": now(),
        }
        status = {"status": {**facts, "conditions": [ready]}}
        await self._call("PATCH", f"/api/v1/nodes/{NODE}/status", status, STRATEGIC)

    async def _follow(self) -> None:
        """List the pods of this node and watch them; after a broken watch, list again."""
        while True:
            with contextlib.suppress(httpx.HTTPError):
                await self._watch()
            await asyncio.sleep(RELIST_S)

    async def _watch(self) -> None:
        mine = {"fieldSelector": f"spec.nodeName={NODE}"}
        listed = (await self._api.get("/api/v1/pods", params=mine)).raise_for_status().json()
        for item in listed["items"]:
            self._notice(Pod.model_validate(item))
        since = {"watch": "1", "resourceVersion": listed["metadata"]["resourceVersion"]}
        patient = httpx.Timeout(10, read=None)
        path = "/api/v1/pods"
        async with self._api.stream("GET", path, params=mine | since, timeout=patient) as answer:
            async for line in answer.aiter_lines():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                pod = Pod.model_validate(event["object"])
                if event["type"] == "DELETED":
                    self._forget(pod)
                else:
                    self._notice(pod)

    def _notice(self, pod: Pod) -> None:
        self._pods[pod.metadata.namespace, pod.metadata.name] = pod
        task = asyncio.create_task(self._act(pod))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _forget(self, pod: Pod) -> None:
        self._pods.pop((pod.metadata.namespace, pod.metadata.name), None)
        self._reported.pop(pod.metadata.uid, None)

    async def _act(self, pod: Pod) -> None:
        about = pod.metadata
        path = f"/api/v1/namespaces/{about.namespace}/pods/{about.name}"
        if about.deletion_timestamp:
            options: JsonObject = {
                "gracePeriodSeconds": 0,
                "preconditions": {"uid": about.uid},
            }
            await self._call("DELETE", path, options)
            return
        is_known = about.uid in self._reported
        if is_known and self._reported[about.uid] is pod.failure:
            return
        self._reported[about.uid] = pod.failure
        if pod.failure is not Failure.HANG:
            await self._report(pod, path, delay_s=0 if is_known else pod.delay_s)

    async def _report(self, pod: Pod, path: str, delay_s: float) -> None:
        address = next(self._addresses)
        if delay_s:
            await self._call("PATCH", f"{path}/status", _of(pod, make_started(pod, address)), MERGE)
            await asyncio.sleep(delay_s)
        await self._call("PATCH", f"{path}/status", _of(pod, make_status(pod, address)), MERGE)
        for number, event in enumerate(list_events(pod)):
            await self._send_event(pod, number, *event)

    async def _send_event(
        self, pod: Pod, number: int, kind: str, reason: str, message: str
    ) -> None:
        about = pod.metadata
        event: JsonObject = {
            "metadata": {"name": f"{about.name}.{number}-{pod.failure}"},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
            },
            "type": kind,
            "reason": reason,
            "message": message,
            "count": 1,
            "source": {"component": "kubelet", "host": NODE},
            "firstTimestamp": now(),
            "lastTimestamp": now(),
        }
        await self._call("POST", f"/api/v1/namespaces/{about.namespace}/events", event)

    async def _call(
        self, method: str, path: str, body: Json, headers: dict[str, str] | None = None
    ) -> None:
        """Send a change; what is gone, or ends while it is changed, is left alone."""
        try:
            answer = await self._api.request(method, path, json=body, headers=headers)
        except httpx.HTTPError as error:
            print(f"kubelet: {method} {path}: {error!r}", file=sys.stderr, flush=True)
            return
        if answer.status_code not in {200, 201, 404, 409} and "terminating" not in answer.text:
            print(f"kubelet: {method} {path}: {answer.text}", file=sys.stderr, flush=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a request for the log of a container, or for a command in it."""
        target = urlsplit((await reader.readline()).decode().split(" ")[1])
        while (await reader.readline()).strip():
            pass
        query = parse_qs(target.query)
        asked = {name: values[-1] for name, values in query.items()}
        try:
            match target.path.split("/")[1:]:
                case ["exec", namespace, name, *_] if self._find_exec(namespace, name):
                    annotation = self._find_exec(namespace, name)
                    result = read_result(annotation, query.get("command", []))
                    await serve_exec(reader, writer, asked, result)
                case path:
                    await self._send_log(writer, path, asked)
        finally:
            writer.close()

    def _find_exec(self, namespace: str, name: str) -> str:
        pod = self._pods.get((namespace, name))
        return "" if pod is None else pod.metadata.annotations.get("bed/exec", "")

    async def _send_log(
        self, writer: asyncio.StreamWriter, path: list[str], asked: dict[str, str]
    ) -> None:
        """Answer `GET /containerLogs/NAMESPACE/POD/CONTAINER?tailLines=N&limitBytes=N`."""
        match path:
            case ["containerLogs", namespace, name, _] if (namespace, name) in self._pods:
                text = self._pods[namespace, name].log
            case _:
                text = ""
        lines = text.splitlines(keepends=True)
        if "tailLines" in asked:
            lines = lines[len(lines) - min(int(asked["tailLines"]), len(lines)) :]
        body = "".join(lines).encode()[: int(asked.get("limitBytes", sys.maxsize))]
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n".encode() + body)
        await writer.drain()


def _of(pod: Pod, status: JsonObject) -> JsonObject:
    """Return a change of the status of exactly this pod, not of one with the same name."""
    return {"metadata": {"uid": pod.metadata.uid}, "status": status}


def _make_address(number: int) -> str:
    return f"10.{1 + number // 65536}.{number // 256 % 256}.{number % 256}"


def _open_api(kubeconfig: Path) -> httpx.AsyncClient:
    config = json.loads(kubeconfig.read_bytes())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return httpx.AsyncClient(
        base_url=cluster["server"],
        verify=ssl.create_default_context(cadata=authority),
        headers={"Authorization": f"Bearer {user['token']}"},
        limits=httpx.Limits(max_connections=32),
        timeout=httpx.Timeout(30, pool=None),
        trust_env=False,
    )


async def _main() -> None:
    async with _open_api(Path(os.environ["KUBECONFIG"])) as api:
        await Kubelet(api).run()


if __name__ == "__main__":
    asyncio.run(_main())
