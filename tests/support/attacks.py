"""Attacks of a hostile tenant, or its runner, on a shared control plane.

Each attack is a function of a tenant. It returns the status codes that it got, and asserts nothing:
the tests measure the effect on other tenants. The fault tests run each once, the bench all of them at
full rate.
"""

import json
import os
import socket
import threading
from collections.abc import Callable
from typing import Any

import httpx
import zstandard

from exclave.wire.workflows import MAX_STEPS
from tests.support.tenants import APP, RawRunner, Tenant, provision

MIB = 1 << 20
RECORD = b'[1,1,1,"x"]\n'
HEAVY = (
    "{{ range $i := until 390 }}{{ range $j := until 300 }}{{ if $j }}{{ end }}{{ end }}{{ end }}"
    "{{ .nuon.install.id }}"
)
"""A template that uses up the whole budget of one rendering."""
_ACTION = (
    'name = "tick"\ntimeout = "1m"\n[[triggers]]\ntype = "manual"\n'
    '[[steps]]\nname = "step"\ncommand = "echo {{ .nuon.inputs.inputs.message }}"\n'
)
_INPUTS = (
    '[[group]]\nname = "g"\ndisplay_name = "g"\ndescription = "g"\n'
    '[[input]]\nname = "message"\ndisplay_name = "m"\ndescription = "d"\ngroup = "g"\ndefault = "ok"\n'
)

Attack = Callable[[Tenant], list[int]]


def begin_execution(tenant: Tenant) -> tuple[str, RawRunner, dict[str, Any]]:
    """Start a script on an install of its own and return the queue, its runner and the offer."""
    queue = tenant.add_install()
    runner = tenant.enrol(queue)
    tenant.start_script(queue)
    return queue, runner, runner.begin()


def compress(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=9).compress(data)


def make_bomb(size: int) -> bytes:
    """Return a compressed frame of zero bytes that does not declare its length."""
    packer = zstandard.ZstdCompressor(level=1, write_content_size=False).compressobj()
    zeros = bytes(MIB)
    return b"".join([*(packer.compress(zeros) for _ in range(size // MIB)), packer.flush()])


def send_log_bomb(tenant: Tenant) -> list[int]:
    """Append a frame that expands to a gigabyte after a valid one, and read the log."""
    queue, runner, offer = begin_execution(tenant)
    sent = runner.append_log(offer, 0, compress(RECORD) + make_bomb(1024 * MIB))
    alone = runner.append_log(offer, 0, make_bomb(1024 * MIB))
    read = tenant.client.get(f"/v1/jobs/{tenant.find_job(queue)}/logs")
    return [sent.status_code, alone.status_code, read.status_code]


def send_log_junk(tenant: Tenant, pieces: int = 20) -> list[int]:
    """Store megabytes behind records of a few bytes, then let the server merge them."""
    _, runner, offer = begin_execution(tenant)
    body = compress(RECORD) + os.urandom(3 * MIB)
    statuses = [runner.append_log(offer, n * len(RECORD), body).status_code for n in range(pieces)]
    return [*statuses, runner.finish(offer, log_end=0).status_code]


def send_tiny_log_pieces(tenant: Tenant, pieces: int = 3000) -> list[int]:
    """Send a log in pieces of one record, then let the server merge it."""
    _, runner, offer = begin_execution(tenant)
    body, offset, statuses = compress(RECORD), 0, set()
    for number in range(pieces):
        reply = runner.append_log(offer, offset, body)
        statuses.add(reply.status_code)
        offset = reply.json().get("next_offset", offset)
        if number % 500 == 0:
            runner.renew(offer)
    return [*statuses, runner.finish(offer, log_end=offset).status_code]


def send_malformed_records(tenant: Tenant) -> list[int]:
    """Store records that are not valid JSON, then read and search them."""
    queue, runner, offer = begin_execution(tenant)
    offset, statuses = 0, []
    for line in (
        b"[" * 5000 + b"]" * 5000,
        b'[1,1,1,"\\ud800x"]',
        b'[1,1,1,"\\u0000"]',
        b'[1e999,1,1,"x"]',
        b"[" + b"9" * 5000 + b',1,1,"x"]',
        b'{"4":1}',
        b"\xff\xfe",
        b'[1,1,1,"a"]\r[1,1,1,"b"]',
    ):
        reply = runner.append_log(offer, offset, compress(line + b"\n"))
        statuses.append(reply.status_code)
        offset = reply.json().get("next_offset", offset)
    job = tenant.find_job(queue)
    for path in (
        f"/v1/jobs/{job}/logs",
        f"/v1/jobs/{job}/logs/search?q=a",
        f"/v1/logs/search?queue_id={queue}&q=a",
    ):
        statuses.append(tenant.client.get(path).status_code)
    return statuses


def search_logs(tenant: Tenant, segments: int = 8, searches: int = 4) -> list[int]:
    """Search half a million records several times at once."""
    queue, runner, offer = begin_execution(tenant)
    records = b"".join(b'[%d,1,1,"a"]\n' % number for number in range(60_000))[:MIB]
    records = records[: records.rfind(b"\n") + 1]
    body, offset = compress(records), 0
    for _ in range(segments):
        offset = runner.append_log(offer, offset, body).json().get("next_offset", offset)
    path = f"/v1/jobs/{tenant.find_job(queue)}/logs/search?q=zzzzzz"
    return run_together([lambda mine: mine.client.get(path).status_code] * searches, tenant)


def render_labels_and_readme(tenant: Tenant, labels: int = 30) -> list[int]:
    """Create an install whose labels and README each use the whole rendering budget."""
    table = "".join(f"l{number} = '''{HEAVY}'''\n" for number in range(labels))
    metadata = f"{APP['metadata.toml']}[default_labels]\n{table}"
    synced = tenant.sync("labels", {**APP, "metadata.toml": metadata, "README.md": HEAVY})
    made = tenant.client.post(
        "/v1/installs", json={"name": os.urandom(6).hex(), "app": "labels", "provision": False}
    )
    statuses = [synced.status_code, made.status_code]
    if made.status_code < 300:
        path = f"/v1/installs/{made.json()['id']}/readme"
        statuses += [tenant.client.get(path).status_code for _ in range(3)]
    return statuses


def start_huge_workflows(tenant: Tenant) -> list[int]:
    """Start workflows of the maximum size, with all edges and scripts, and larger ones."""
    queue = tenant.add_install()
    script = {"kind": "script", "steps": [{"name": "x", "script": "#" * 4_500}]}
    dense = [
        {"name": f"s{n}", "job": {"kind": "noop"}, "needs": [f"s{m}" for m in range(n)]}
        for n in range(1000)
    ]
    largest = [
        {"name": f"s{n}", "job": script, "needs": [f"s{m}" for m in range(max(0, n - 10), n)]}
        for n in range(MAX_STEPS)
    ]
    calls = [
        _make_post("/v1/workflows", {"name": "w", "queue_id": queue, "steps": steps})
        for steps in (dense, largest, largest)
    ]
    return run_together(calls, tenant)


def sync_dotted_keys(tenant: Tenant, requests: int = 7) -> list[int]:
    """Sync TOML files whose keys have thousands of parts."""
    text = "".join("a." * 10_000 + f"b{number} = 1\n" for number in range(10))
    files = {**APP, "components/x.toml": text}
    call = lambda mine: mine.sync("dotted", files, dry_run=True).status_code  # noqa: E731
    return run_together([call] * requests, tenant)


def run_poisoned_action(tenant: Tenant) -> list[int]:
    """Run an action whose input has one apostrophe."""
    files = {**APP, "inputs.toml": _INPUTS, "actions/tick.toml": _ACTION}
    synced = tenant.sync("poison", files)
    made = tenant.client.post(
        "/v1/installs",
        json={
            "name": os.urandom(6).hex(),
            "app": "poison",
            "inputs": {"message": "it's {{ "},
            "provision": False,
        },
    )
    if made.status_code >= 300:
        return [synced.status_code, made.status_code]
    install = made.json()["id"]
    runner = tenant.enrol(install)
    runner.report(facts={"region": "here"})
    ran = tenant.client.post(f"/v1/installs/{install}/actions/run", json={"action": "tick"})
    statuses = [synced.status_code, made.status_code, ran.status_code]
    for offer in runner.poll():
        runner.start(offer)
        statuses.append(runner.finish(offer).status_code)
    return statuses


def flood_reports(tenant: Tenant, reports: int = 60) -> list[int]:
    """Report changed inputs as a Stack repeatedly, up to the size limit and beyond."""
    fields = "".join(
        f'[[input]]\nname = "i{n}"\ndisplay_name = "i"\ndescription = "d"\ngroup = "g"\n'
        'default = "x"\nuser_configurable = true\n'
        for n in range(10)
    )
    tenant.sync("reports", {**APP, "inputs.toml": _INPUTS + fields})
    body = {"name": os.urandom(6).hex(), "app": "reports", "provision": False}
    install = tenant.post("/v1/installs", body)["id"]
    runner = tenant.enrol(install)
    sizes = [6_000 if number % 2 else 65_000 for number in range(reports)]
    inputs = [{f"i{n}": f"{r}-{'y' * size}" for n in range(10)} for r, size in enumerate(sizes)]
    return [runner.report(facts={}, inputs=each).status_code for each in inputs]


def open_uploads(tenant: Tenant, size: int = 32 * MIB, most: int = 12) -> list[int]:
    """Push to the registry in uploads that are never finished."""
    password = tenant.post("/v1/registry/tokens", {"repository": "*", "push": True})["password"]
    org = tenant.get("/v1/whoami")["org"]["id"]
    headers = {"Authorization": f"Bearer {password}"}
    statuses = []
    with httpx.Client(base_url=tenant.runner_url, headers=headers, timeout=60) as registry:
        for _ in range(most):
            opened = registry.post(f"/v2/{org}/x/blobs/uploads/")
            statuses.append(opened.status_code)
            if place := opened.headers.get("location"):
                statuses.append(registry.patch(place, content=os.urandom(size)).status_code)
    return statuses


def hold_half_requests(tenant: Tenant, connections: int = 1100) -> list[int]:
    """Open connections and send half of a request's head on each, without a login."""
    held = []
    url = httpx.URL(tenant.control_url)
    for _ in range(connections):
        try:
            one = socket.create_connection((url.host, url.port or 80), timeout=5)
            one.sendall(b"POST /v1/workflows HTTP/1.1\r\nHost: x\r\nX-a: ")
        except OSError:
            break
        held.append(one)
    reached = [tenant.client.get("/v1/whoami").status_code]
    for one in held:
        one.close()
    return reached


def provision_heavy_templates(tenant: Tenant, variables: int = 30) -> list[int]:
    """Provision an install whose plan renders many heavy templates."""
    table = "".join(f"v{number} = '''{HEAVY}'''\n" for number in range(variables))
    synced = tenant.sync("heavy", {**APP, "sandbox.toml": f"{SANDBOX_WITH_VARS}{table}"})
    body = {"name": os.urandom(6).hex(), "app": "heavy", "approve_all": True}
    made = tenant.client.post("/v1/installs", json=body)
    if made.status_code < 300:
        install = made.json()["id"]
        provision(tenant, install, tenant.enrol(install))
    return [synced.status_code, made.status_code]


SANDBOX_WITH_VARS = f"{APP['sandbox.toml']}[vars]\n"

ATTACKS: tuple[Attack, ...] = (
    send_log_bomb, send_log_junk, send_tiny_log_pieces, send_malformed_records, search_logs,
    render_labels_and_readme, start_huge_workflows, sync_dotted_keys, run_poisoned_action,
    flood_reports, open_uploads, hold_half_requests, provision_heavy_templates,
)  # fmt: skip


def run_together(calls: list[Callable[[Tenant], int]], tenant: Tenant) -> list[int]:
    """Make calls at once, each on connections of its own; return what they returned."""
    statuses: list[int] = []

    def call(one: Callable[[Tenant], int]) -> None:
        mine = tenant.clone()
        try:
            statuses.append(one(mine))
        finally:
            mine.close()

    threads = [threading.Thread(target=call, args=(one,)) for one in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


def _make_post(path: str, body: Any) -> Callable[[Tenant], int]:
    content, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
    return lambda mine: mine.client.post(path, content=content, headers=headers).status_code
