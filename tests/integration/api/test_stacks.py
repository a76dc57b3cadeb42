"""Stacks over HTTP: files and instructions, also of a cloud that is only registered."""

import hashlib
from typing import Any
from urllib.parse import urlsplit

import pytest

from exclave.stacks import registry
from tests.integration.api.kit import Site
from tests.integration.api.live import open_live
from tests.support.installs import make_app, make_app_install
from tests.support.toy_stack import add_toy_stack

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def site(shared_site: Site) -> Site:
    return shared_site


async def create_stack(site: Site, cloud: str) -> tuple[str, Any]:
    """Create an install of a new app and its Stack; return the app's name and the Stack."""
    name = site.deps.ids.new("x").replace("_", "-")
    app = await make_app(site.deps, site.admin.user, name, cloud=cloud)
    place = {} if cloud == "local" else {"region": "eu-west-1"}
    made = await make_app_install(site.deps, site.admin.user, app, name, provision=False, **place)
    reply = await site.call("POST", f"/v1/installs/{made.id}/stack")
    assert reply.status_code == 201
    return name, reply.json()


async def fetch(site: Site, url: str) -> Any:
    return await site.call("GET", urlsplit(url).path, "", app="runner")


async def test_the_local_stack_is_one_script_with_a_line_that_fetches_it(site: Site) -> None:
    _, created = await create_stack(site, "local")

    (file,) = created["files"]
    fetched = await fetch(site, file["url"])

    assert (created["cloud"], file["name"]) == ("local", "local.py")
    assert file["sha256"] == hashlib.sha256(file["content"].encode()).hexdigest()
    assert file["size"] == len(file["content"].encode())
    assert f'url = "{file["url"]}"' in created["instructions"]["commands"][0]
    assert [parameter["name"] for parameter in created["parameters"]] == ["zone"]
    assert fetched.headers["content-type"] == "text/x-python; charset=utf-8"
    assert fetched.text.startswith("#!/usr/bin/env python3\n")


async def test_a_file_that_the_stack_does_not_have_is_not_found_and_voids_nothing(
    site: Site,
) -> None:
    _, created = await create_stack(site, "local")
    url = created["files"][0]["url"]

    missing = await fetch(site, url.replace("local.py", "remote.py"))
    present = await fetch(site, url)

    assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    assert present.status_code == 200


async def test_a_registered_cloud_gives_its_files_over_the_api(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_toy_stack(monkeypatch)

    app, created = await create_stack(site, "aws")
    replies = [await fetch(site, file["url"]) for file in created["files"]]

    assert created["cloud"] == "aws"
    assert [file["name"] for file in created["files"]] == [
        "toy.json",
        "terraform/main.tf.json",
        "README.md",
    ]
    assert created["files"][1]["url"].endswith("/terraform/main.tf.json")
    assert replies[0].json() == {"app": app}
    assert replies[0].headers["content-type"] == "application/json"
    assert replies[2].text == "# Toy\n"
    assert [hashlib.sha256(reply.content).hexdigest() for reply in replies] == [
        file["sha256"] for file in created["files"]
    ]
    assert created["instructions"]["links"][0]["title"] == "Create it in the console"
    assert created["parameters"][-1]["name"] == "RunnerEnabled"


@pytest.mark.parametrize(
    "name",
    [
        "terraform",
        "terraform/",
        "main.tf.json",
        "terraform/main.tf.json/",
        "terraform//main.tf.json",
        "./toy.json",
        "terraform/../toy.json",
        "/etc/passwd",
    ],
)
async def test_a_file_has_one_name(site: Site, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    add_toy_stack(monkeypatch)
    _, created = await create_stack(site, "aws")
    folder = urlsplit(created["files"][0]["url"]).path.removesuffix("toy.json")

    request = open_live(site, "GET", folder + name, app="runner")
    await request.finish()

    assert request.status == 404


async def test_an_app_for_a_cloud_without_a_stack_gets_no_install(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "CLOUD_STACKS", {})
    name = site.deps.ids.new("x").replace("_", "-")
    await make_app(site.deps, site.admin.user, name, cloud="gcp")
    body = {"name": name, "app": name, "inputs": {"domain": "a.test"}}

    reply = await site.call("POST", "/v1/installs", json=body)

    problem = reply.json()
    assert (reply.status_code, problem["code"]) == (409, "conflict")
    assert problem["detail"] == (
        f"the app `{name}` is for `gcp`, and there is no Stack for that cloud yet"
    )
    assert "Clouds with a Stack: `local`" in problem["hint"]
