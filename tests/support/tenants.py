"""Tenants over plain HTTP: an org's admin, and a runner that can send arbitrary requests."""

import base64
import io
import json
import secrets
import tarfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from exclave.wire.envelope import encode_bytes
from exclave.wire.runner import PROTOCOL, token_message

TIMEOUT_S = 120.0
ALL_KINDS = ("action", "noop", "script", "secrets", "terraform")
SANDBOX = 'terraform_version = "1.11.4"\n[public_repo]\nrepo = "."\ndirectory = "sandbox"\n'
APP = {
    "metadata.toml": 'version = "v2"\ndescription = "x"\ndisplay_name = "x"\nreadme = "./README.md"\n',
    "runner.toml": 'runner_type = "local"\n',
    "sandbox.toml": SANDBOX,
    "sandbox/main.tf": 'output "x" { value = "1" }\n',
    "inputs.toml": "",
    "README.md": "Install {{ .nuon.install.id }}",
}
"""The smallest app directory with a sandbox."""


@dataclass
class Tenant:
    """An org's admin on the Control API, and the address at which its runners are served."""

    control_url: str
    runner_url: str
    token: str
    client: httpx.Client = field(init=False)
    runners: list["RawRunner"] = field(default_factory=list)
    """Those that it enrolled, closed with it."""

    def __post_init__(self) -> None:
        headers = {"Authorization": f"Bearer {self.token}"}
        self.client = httpx.Client(base_url=self.control_url, headers=headers, timeout=TIMEOUT_S)

    def close(self) -> None:
        self.client.close()
        for runner in self.runners:
            runner.client.close()

    def clone(self) -> "Tenant":
        """Return the same admin on connections of their own, for another thread."""
        return Tenant(self.control_url, self.runner_url, self.token)

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Post and return the reply, which must be a good one."""
        return _read(self._send("POST", path, json=body or {}))

    def get(self, path: str, **query: Any) -> Any:
        """Get and return the reply, which must be a good one."""
        return _read(self._send("GET", path, params=query))

    def _send(self, method: str, path: str, **content: Any) -> httpx.Response:
        """Send a request, again if the server asks to come back later."""
        until = time.monotonic() + TIMEOUT_S
        while True:
            reply = self.client.request(method, path, **content)
            if reply.status_code != httpx.codes.TOO_MANY_REQUESTS or time.monotonic() > until:
                return reply
            time.sleep(float(reply.headers.get("retry-after", 1)))

    def add_install(self, name: str = "") -> str:
        """Create an install without an app and return its id."""
        return str(self.post("/v1/installs", {"name": name or f"i-{secrets.token_hex(6)}"})["id"])

    def enrol(self, queue: str, *kinds: str) -> "RawRunner":
        """Enrol a runner for a queue."""
        token = self.post("/v1/enrolments", {"queue_id": queue})["token"]
        self.runners.append(RawRunner(self.runner_url, token, kinds or ALL_KINDS))
        return self.runners[-1]

    def start_script(self, queue: str, script: str = "echo hi", **step: Any) -> Any:
        """Start a workflow of one script."""
        job = {"kind": "script", "steps": [{"name": "work", "script": script}]}
        steps = [{"name": "step", "job": job, **step}]
        return self.post("/v1/workflows", {"name": "script", "queue_id": queue, "steps": steps})

    def find_job(self, queue: str) -> str:
        """Return the id of the newest job of a queue."""
        return str(self.get("/v1/jobs", queue_id=queue)["items"][0]["id"])

    def sync(
        self, app: str, files: Mapping[str, str | bytes], *, dry_run: bool = False
    ) -> httpx.Response:
        """Upload an app directory and return the response, successful or not."""
        self.client.post("/v1/apps", json={"name": app})
        return self.client.put(
            f"/v1/apps/{app}/sync",
            params={"dry_run": "true"} if dry_run else {},
            content=pack(files),
            headers={"Content-Type": "application/x-tar"},
        )


@dataclass
class RawRunner:
    """A runner that enrols normally and then sends arbitrary requests."""

    url: str
    enrolment: str
    kinds: tuple[str, ...] = ALL_KINDS
    client: httpx.Client = field(init=False)
    identity: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self._key = Ed25519PrivateKey.generate()
        self._no = 0
        self.client = httpx.Client(base_url=self.url, timeout=TIMEOUT_S)
        self.identity = _read(
            self.client.post(
                "/v1/enrol",
                json={
                    "token": self.enrolment,
                    "public_key": encode_bytes(self._key.public_key().public_bytes_raw()),
                    "name": "raw",
                    "version": "0.1.0",
                    "protocol": PROTOCOL,
                    "capabilities": list(self.kinds),
                },
            )
        )
        self._sign_in()

    def poll(self, hold_s: float = 2.0) -> list[dict[str, Any]]:
        """Poll and return the offers."""
        self._no += 1
        body = {
            "boot": 1,
            "no": self._no,
            "nonce": secrets.token_hex(16),
            "free": 4,
            "executions": [],
            "max_hold_s": hold_s,
            "version": "0.1.0",
            "protocol": PROTOCOL,
            "capabilities": list(self.kinds),
        }
        offers: list[dict[str, Any]] = _read(self.client.post("/v1/poll", json=body))["offers"]
        return offers

    def begin(self) -> dict[str, Any]:
        """Take the next offer and start it."""
        offer = next(offer for _ in range(20) for offer in self.poll())
        assert self.start(offer).status_code == 200
        return offer

    def start(self, offer: Mapping[str, Any]) -> httpx.Response:
        """Ask for permission to start an offer."""
        self._no += 1
        body = {"boot": 1, "no": self._no, "epoch": offer["epoch"]}
        return self.client.post(f"/v1/executions/{offer['execution_id']}/start", json=body)

    def renew(self, *offers: Mapping[str, Any]) -> httpx.Response:
        """Renew executions."""
        self._no += 1
        running = [{"id": one["execution_id"], "epoch": one["epoch"]} for one in offers]
        return self.client.post(
            "/v1/renew", json={"boot": 1, "no": self._no, "executions": running}
        )

    def append_log(self, offer: Mapping[str, Any], offset: int, body: bytes) -> httpx.Response:
        """Send a piece of log."""
        return self.client.post(
            f"/v1/executions/{offer['execution_id']}/log",
            params={"offset": offset, "epoch": offer["epoch"]},
            headers={"Content-Type": "application/zstd"},
            content=body,
        )

    def finish(self, offer: Mapping[str, Any], **outcome: Any) -> httpx.Response:
        """Hand in a result; a success unless the outcome says otherwise."""
        whole = {"state": "succeeded", "reason": "completed", **outcome}
        body = {"epoch": offer["epoch"], "outcome": whole}
        return self.client.post(f"/v1/executions/{offer['execution_id']}/result", json=body)

    def report(self, **facts: Any) -> httpx.Response:
        """Send a Stack report."""
        return self.client.post("/v1/stack/report", json=facts)

    def serve(self, hold_s: float = 1.0) -> None:
        """Finish every offer as a runner would whose tools always succeed."""
        for offer in self.poll(hold_s):
            self.start(offer)
            self.finish(offer, outputs=_make_outputs(read_spec(offer)))

    def _sign_in(self) -> None:
        runner, generation = self.identity["runner_id"], self.identity["generation"]
        nonce = _read(self.client.post("/v1/token/nonce", json={"runner_id": runner}))["nonce"]
        signature = self._key.sign(token_message(runner, nonce, generation))
        body = {
            "runner_id": runner,
            "nonce": nonce,
            "generation": generation,
            "signature": encode_bytes(signature),
        }
        reply = _read(self.client.post("/v1/token", json=body))
        self.client.headers["Authorization"] = f"Bearer {reply['access_token']}"


def read_spec(offer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the job specification of an offer."""
    payload = str(offer["envelope"]).split(".")[1]
    dispatch = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return dict(dispatch["spec"])


def provision(tenant: Tenant, install: str, runner: RawRunner) -> str:
    """Serve an install's jobs until it is active or failed; return which."""
    runner.report(facts={"region": "here"})
    until = time.monotonic() + TIMEOUT_S
    while time.monotonic() < until:
        runner.serve()
        state = str(tenant.get(f"/v1/installs/{install}")["state"])
        if state in {"active", "failed"}:
            return state
    raise AssertionError("the install is not provisioned")


def pack(files: Mapping[str, str | bytes]) -> bytes:
    """Pack files into a tar archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _make_outputs(spec: Mapping[str, Any]) -> dict[str, Any]:
    if spec["kind"] != "terraform":
        return {}
    if spec["operation"] == "plan":
        return {"digest": f"sha256:{secrets.token_hex(32)}", "noop": False, "serial": 0}
    return {"outputs": {}}


def _read(reply: httpx.Response) -> Any:
    assert reply.status_code < 300, (str(reply.request.url), reply.status_code, reply.text[:500])
    return reply.json() if reply.content else None
