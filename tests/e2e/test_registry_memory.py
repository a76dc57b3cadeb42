"""A blob much larger than the server's memory should be passes through it."""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.faults.site import Site, open_site

MIB = 1 << 20
SIZE = 384
ROOM = 96
CHUNK = bytes(range(256)) * (MIB // 256)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with open_site(tmp_path) as made:
        yield made


def read_peak(site: Site) -> int:
    """Tell the most memory that the server has ever had, in MiB."""
    running = site.servers[0].running
    assert running is not None
    status = Path(f"/proc/{running.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) // 1024


def test_a_large_blob_is_never_in_memory(site: Site) -> None:
    token = site.post("/v1/registry/tokens", {"repository": "*", "push": True})["password"]
    base = f"/v2/{site.get('/v1/org')['id']}/apps/demo/blobs"
    digest = hashlib.sha256()
    for _ in range(SIZE):
        digest.update(CHUNK)
    name = f"sha256:{digest.hexdigest()}"
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=site.balancers[1].url, headers=headers, timeout=120) as client:
        client.get("/v2/")
        before = read_peak(site)

        place = client.post(f"{base}/uploads/").headers["Location"]
        for _ in range(2):  # two pieces, so that they have to be joined
            client.patch(place, content=(CHUNK for _ in range(SIZE // 2))).raise_for_status()
        client.put(f"{place}?digest={name}").raise_for_status()
        got = hashlib.sha256()
        with client.stream("GET", f"{base}/{name}") as reply:
            for chunk in reply.iter_raw():
                got.update(chunk)

    assert got.hexdigest() == digest.hexdigest()
    assert read_peak(site) - before < ROOM
