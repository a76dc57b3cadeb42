"""Stacks of clouds over HTTP: the customer's page, files with their signatures, the program."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from exclave import __version__
from exclave.api.runner import build_runner_app
from exclave.base.digests import canonical_json
from exclave.control.stacks import stacks
from exclave.domain.identity import InstallId
from exclave.wire.envelope import encode_bytes, verify_signature
from exclave.wire.stacks import StackCreated
from tests.integration.api.kit import Site
from tests.support.installs import make_app, make_app_install
from tests.support.toy_cloud_stack import add_toy_cloud, write_archives

pytestmark = pytest.mark.asyncio(loop_scope="module")
NASTY = "<script>alert('x')</script> & [link](javascript:x)"


@pytest.fixture
def site(shared_site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Site:
    """The APIs with a Stack for a cloud and a program for its machines."""
    add_toy_cloud(monkeypatch)
    deps = replace(shared_site.deps, bundles=write_archives(tmp_path))
    runner = httpx.AsyncClient(
        transport=httpx.ASGITransport(build_runner_app(deps)), base_url="http://runner.test"
    )
    return replace(shared_site, deps=deps, runner=runner)


async def create(site: Site, **more: Any) -> StackCreated:
    name = site.deps.ids.new("x").replace("_", "-")
    app = await make_app(site.deps, site.admin.user, name, cloud="aws", **more)
    made = await make_app_install(
        site.deps, site.admin.user, app, name, provision=False, region="eu-west-1"
    )
    return await stacks.create_stack(site.deps, site.admin.user, InstallId(made.id))


async def get(site: Site, url: str, **headers: str) -> httpx.Response:
    return await site.runner.get(urlsplit(url).path, headers=headers)


async def test_the_page_has_no_script_and_escapes_what_the_app_says(site: Site) -> None:
    secrets = ({"name": "db_password", "required": True, "description": NASTY},)
    role = {"type": "provision", "name": "p", "display_name": NASTY, "description": NASTY}
    created = await create(site, secrets=secrets, more_parts={"permission": [role]})

    page = await get(site, created.page)

    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "no-referrer"
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src" not in policy
    assert "<script" not in page.text
    assert "&lt;script&gt;alert(&#x27;x&#x27;)" in page.text
    assert created.files[0].sha256 in page.text
    assert f"toy create {created.page}1/aws.json" in page.text


async def test_a_numbered_file_is_kept_by_browsers_and_the_latest_is_asked_for(site: Site) -> None:
    created = await create(site)

    numbered = await get(site, f"{created.page}1/aws.json")
    latest = await get(site, f"{created.page}latest/aws.json")
    same = await get(
        site, f"{created.page}latest/aws.json", **{"if-none-match": numbered.headers["etag"]}
    )

    assert numbered.headers["etag"] == f'"{created.files[0].sha256}"'
    assert numbered.headers["cache-control"] == "private, max-age=31536000, immutable"
    assert latest.headers["cache-control"] == "no-cache"
    assert latest.content == numbered.content
    assert (same.status_code, same.content) == (304, b"")
    assert "access-control-allow-origin" not in numbered.headers


async def test_a_signature_names_the_file_the_install_and_the_version(site: Site) -> None:
    created = await create(site)
    file = created.files[0]
    keys = await site.runner.get("/v1/keys")
    newest = keys.json()["keys"][-1]

    signed = await get(site, f"{created.page}1/{file.name}.sig")

    header, nothing, signature = signed.text.strip().split(".")
    install = re.search(r'"install": "([^"]+)"', file.content)
    assert install is not None
    payload = {"file": file.name, "install": install[1], "sha256": file.sha256, "version": 1}
    message = f"{header}.{encode_bytes(canonical_json(payload))}".encode()
    assert nothing == ""
    assert verify_signature(newest["public_key"], message, signature)
    assert not verify_signature(newest["public_key"], message + b"x", signature)


async def test_the_instructions_are_served_as_text(site: Site) -> None:
    created = await create(site)

    text = (await get(site, f"{created.page}1/INSTRUCTIONS.md")).text

    assert "## Apply it" in text
    assert f"toy create {created.page}1/aws.json" in text
    assert "- [Console](<https://toy.test/console>)" in text


@pytest.mark.parametrize("end", ["1/nothing.json", "9/aws.json", "latest", "1/", "1/../2/aws.json"])
async def test_what_is_not_there_is_not_found(site: Site, end: str) -> None:
    created = await create(site)

    reply = await get(site, f"{created.page}{end}")

    assert reply.status_code == 404


async def test_guesses_are_limited_and_links_still_work(site: Site) -> None:
    created = await create(site)

    replies = [await get(site, f"/v1/stacks/xcv_{number}/") for number in range(40)]

    assert replies[0].status_code == 404
    assert replies[-1].status_code == 429
    assert replies[-1].json()["code"] == "rate_limited"
    assert (await get(site, created.page)).status_code == 200


async def test_the_program_of_a_machine_is_served_and_nothing_beside_it(site: Site) -> None:
    file = f"/v1/stacks/package/runner-{__version__}-x86_64.tar.gz"

    served = await get(site, file)
    missing = await get(site, "/v1/stacks/package/runner-9.9.9-x86_64.tar.gz")

    assert (served.status_code, served.content) == (200, b"x86_64")
    assert missing.status_code == 404
