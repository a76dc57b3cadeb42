"""A server that is killed during a sync: what it unpacked is gone after the next start."""

import http.client
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.faults.site import Site, make_site, wait_until

HALF = 1 << 20


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = make_site(tmp_path)
    (tmp_path / "tmp").mkdir()
    for server in made.servers:
        server.env["TMPDIR"] = str(tmp_path / "tmp")
    try:
        made.begin_servers()
        yield made
    finally:
        made.end()


def begin_upload(site: Site) -> http.client.HTTPConnection:
    """Send the first half of an archive."""
    connection = http.client.HTTPConnection(urlsplit(site.balancers[0].url).netloc)
    connection.putrequest("PUT", "/v1/apps/demo/sync")
    connection.putheader("Authorization", f"Bearer {site.token}")
    connection.putheader("Content-Length", str(2 * HALF))
    connection.endheaders(b"x" * HALF)
    return connection


def list_archives(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("app.tar") if path.stat().st_size]


def test_a_server_that_was_killed_during_a_sync_leaves_nothing(site: Site, tmp_path: Path) -> None:
    site.post("/v1/apps", {"name": "demo"})
    connection = begin_upload(site)
    wait_until(lambda: list_archives(tmp_path), "the upload arrives")

    site.servers[0].kill9()
    connection.close()
    left = list_archives(tmp_path / "data")
    site.servers[0].start()
    site.wait_for_server()

    assert len(left) == 1
    assert list((tmp_path / "tmp").glob("exclave-*")) == []
    assert list_archives(tmp_path) == []
    assert list(left[0].parents[1].iterdir()) == []
