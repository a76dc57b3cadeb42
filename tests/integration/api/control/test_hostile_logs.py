"""Whatever bytes a runner stores as log: every way to read them answers, with valid JSON."""

import json
import random

import zstandard
from httpx import Response
from sqlalchemy import update

from exclave.control.runtime.log_limits import MAX_PIECES
from exclave.storage.engine.database import Tx
from exclave.storage.tables.work import executions
from tests.integration.api.cases import Running, make_execution
from tests.integration.api.kit import Site
from tests.integration.api.live import open_live
from tests.integration.api.test_streams import finish, read

HOSTILE = (
    b"[" * 5000 + b"]" * 5000,
    b'[1,1,1,"x",{"partial":' + b"[" * 5000 + b"]" * 5000 + b"}]",
    b"[" + b"9" * 5000 + b',1,1,"x"]',
    b'[1,1,1,"needle \\ud800"]',
    b'[1,1,1,"needle \\ud83d\\ude00\\u0000\\r\\n\\u2028"]',
    '[1,1,1,"needle \u2028\u2029\x85"]'.encode(),
    b'[1e999,1,1,"needle"]',
    b'[1,99999999999999999999,1,"needle"]',
    b'[1,1,1,"needle"]\r[1,1,1,"needle"]',
    b'[1,1,1,"needle",{"dropped":-5}]',
    b'{"4":1}',
    b"\xff\xfe\x00",
    b"\r\r",
    b"",
)


def make_lines(seed: int, count: int) -> list[bytes]:
    """Make lines of random bytes, and valid records with some bytes changed."""
    chosen = random.Random(seed)
    lines = []
    for number in range(count):
        line = bytearray(chosen.randbytes(chosen.randrange(60)))
        if number % 2:
            line = bytearray(
                f'[{number},1,2,"needle \\u00e9 \U0001f600",{{"partial":true}}]'.encode()
            )
            for _ in range(chosen.randrange(4)):
                line[chosen.randrange(len(line))] = chosen.randrange(256)
        lines.append(bytes(line).replace(b"\n", b""))
    return lines


async def send(site: Site, running: Running, offset: int, body: bytes) -> Response:
    return await site.call(
        "POST",
        f"/v1/executions/{running.execution}/log",
        running.enrolled.token,
        app="runner",
        params={"epoch": running.epoch, "offset": offset},
        content=body,
    )


async def test_any_stored_bytes_are_read_searched_and_followed(site: Site) -> None:
    running = await make_execution(site)
    lines = [*HOSTILE, *make_lines(7, 300)]
    end = 0
    for at in range(0, len(lines), 50):
        data = b"\n".join([*lines[at : at + 50], b""])
        end = (await send(site, running, end, zstandard.compress(data))).json()["next_offset"]
    await finish(site, running, end)
    path = f"/v1/jobs/{running.job}/logs"

    page = await site.call("GET", path)
    inside = [await site.call("GET", path, params={"offset": at}) for at in range(0, end, 997)]
    found = await site.call("GET", f"{path}/search", params={"q": "needle"})
    everywhere = await site.call(
        "GET", "/v1/logs/search", params={"q": "needle", "queue_id": running.queue}
    )
    events = read(await open_live(site, "GET", f"{path}/stream").finish())

    records = page.json()["records"]
    assert len(records) == len(lines)
    assert page.json()["complete"]
    assert {reply.status_code for reply in inside} == {200}
    assert found.json() == everywhere.json()
    assert len(found.json()["items"]) > 40
    assert [data for name, _, data in events if name == "record"] == records
    assert json.dumps(records, ensure_ascii=False).encode()


async def test_a_full_log_is_refused_and_the_result_is_taken(site: Site) -> None:
    running = await make_execution(site)

    def fill(tx: Tx) -> None:
        mine = executions.c.id == running.execution
        tx.run(update(executions).where(mine).values(log_pieces=MAX_PIECES))

    await site.deps.db.write(fill)
    refused = await send(site, running, 0, zstandard.compress(b'[1,1,1,"x"]\n'))
    await finish(site, running, 12)
    job = await site.call("GET", f"/v1/jobs/{running.job}")

    assert (refused.status_code, refused.json()["code"]) == (413, "log_full")
    assert "EXCLAVE_LOG_BYTES" in refused.json()["hint"]
    assert job.json()["state"] == "succeeded"
