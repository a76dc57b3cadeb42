"""Apps over HTTP: uploads, refusals, limits."""

import asyncio
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from exclave.control.apps import configs
from exclave.control.deps import ServerDeps
from exclave.storage.engine.database import Database
from exclave.storage.engine.hub import Hub
from exclave.wire.apps import SyncReply
from tests.integration.api.cases_apps import pack_starter
from tests.integration.api.kit import Site
from tests.support.apps import edit, make_app, pack, sync, write_app
from tests.support.databases import NAMES, open_database
from tests.support.shared_statements import choose_sharing_dialect
from tests.support.world import ManualClock, make_deps, make_org


async def create(site: Site, name: str = "demo") -> None:
    reply = await site.call("POST", "/v1/apps", json={"name": name})
    assert reply.status_code == 201, reply.text


async def test_a_directory_is_uploaded_and_read_back(site: Site) -> None:
    await create(site)

    first = await site.call("PUT", "/v1/apps/demo/sync", content=pack_starter())
    again = await site.call("PUT", "/v1/apps/demo/sync", content=pack_starter())
    listed = await site.call("GET", "/v1/apps/demo/configs")
    diff = await site.call("GET", "/v1/apps/demo/diff?before=1&after=1")

    assert (first.status_code, first.json()["changed"]) == (200, True)
    assert (again.status_code, again.json()["changed"]) == (200, False)
    assert [each["version"] for each in listed.json()["items"]] == [1]
    assert diff.json()["parts"] == []


async def test_errors_are_a_problem_with_all_diagnostics(site: Site, tmp_path: Path) -> None:
    await create(site)
    data = pack(write_app(tmp_path, changes={"runner.toml": "runner_type = 3\n"}))

    reply = await site.call("PUT", "/v1/apps/demo/sync", content=data)

    told = reply.json()
    assert (reply.status_code, told["code"]) == (422, "app_invalid")
    found = next(each for each in told["diagnostics"] if each["file"] == "runner.toml")
    assert (found["line"], found["column"], found["text"]) == (1, 15, "runner_type = 3")
    assert (await site.call("GET", "/v1/apps/demo")).json()["config"] is None


def make_bad_tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("../evil"))
    return out.getvalue()


@pytest.mark.parametrize("data", [b"", b"not a tar", b"\0" * 100, make_bad_tar()])
async def test_what_is_no_archive_of_a_directory_is_refused(site: Site, data: bytes) -> None:
    await create(site)

    reply = await site.call("PUT", "/v1/apps/demo/sync", content=data)

    assert reply.status_code == 422
    assert reply.json()["code"] in {"archive_invalid", "app_invalid"}
    assert (await site.call("GET", "/v1/apps/demo")).json()["config"] is None


async def test_an_upload_has_a_limit(site: Site) -> None:
    await create(site)
    headers = {"Content-Length": str((64 << 20) + 1)}

    reply = await site.call("PUT", "/v1/apps/demo/sync", content=b"x", headers=headers)

    assert (reply.status_code, reply.json()["code"]) == (413, "too_large")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/v1/apps/demo/sync?strict=maybe"),
        ("PUT", "/v1/apps/demo/sync?force=true"),
        ("GET", "/v1/apps/demo/diff"),
        ("GET", "/v1/apps/demo/diff?before=0&after=1"),
        ("GET", "/v1/apps/demo/diff?before=1&after=99999999999999999999"),
        ("GET", "/v1/apps/demo/configs?cursor=x"),
    ],
)
async def test_bad_queries_are_refused(site: Site, method: str, path: str) -> None:
    await create(site)

    assert (await site.call(method, path, content=b"")).status_code == 422


@pytest.mark.parametrize("name", ["none", "%2e%2e", "A", "a%00b", "x" * 80])
async def test_apps_that_are_not_there_are_404(site: Site, name: str) -> None:
    for method, path in [("GET", ""), ("PUT", "/sync"), ("GET", "/configs")]:
        assert (await site.call(method, f"/v1/apps/{name}{path}")).status_code == 404


async def test_creating_an_app_twice_under_a_key_makes_one(site: Site) -> None:
    headers = {"Idempotency-Key": "k1"}

    first = await site.call("POST", "/v1/apps", json={"name": "demo"}, headers=headers)
    again = await site.call("POST", "/v1/apps", json={"name": "demo"}, headers=headers)
    other = await site.call("POST", "/v1/apps", json={"name": "demo"})

    assert first.json() == again.json()
    assert other.status_code == 409


@pytest.mark.parametrize("database", NAMES)
async def test_servers_that_sync_the_same_app_at_once_make_versions_in_order(
    database: str, tmp_path: Path
) -> None:
    apps = [
        edit(write_app(tmp_path / str(number)), "inputs.toml", '"world"', f'"n{number}"')
        for number in range(6)
    ]
    with open_database(database) as url:
        deps = make_deps(ManualClock(), url=url, inline=False)
        servers = [deps] if database == "sqlite" else [deps, add_server(deps, url, "srv-2")]
        user = await make_org(deps)
        await make_app(deps, user)

        replies = await asyncio.gather(
            *(sync(servers[at % len(servers)], user, app) for at, app in enumerate(apps)),
            return_exceptions=True,
        )
        page = await configs.list_configs(deps, user, "demo", "", 50)
        for server in servers:
            server.db.close()

    done = [each for each in replies if isinstance(each, SyncReply)]
    refused = [each for each in replies if not isinstance(each, SyncReply)]
    assert all("at the same time" in getattr(each, "advice", "") for each in refused)
    assert [each.version for each in page.items] == list(range(len(done), 0, -1))
    assert len({each.digest for each in page.items}) == len(done) >= 1


def add_server(deps: ServerDeps, url: str, name: str) -> ServerDeps:
    hub = Hub()
    return replace(
        deps, hub=hub, db=Database(choose_sharing_dialect(url), deps.clock, hub, name=name)
    )
