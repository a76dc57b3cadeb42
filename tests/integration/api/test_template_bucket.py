"""Templates in the operator's bucket, from where the console of AWS reads them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from exclave.api.runner import build_runner_app
from exclave.base.errors import InvalidInput
from exclave.control.deps import Deps
from exclave.control.runtime.template_bucket import TemplateBucket
from exclave.control.stacks import stacks
from exclave.domain.identity import InstallId
from exclave.main.composition import open_template_bucket
from exclave.main.settings import ServerSettings
from exclave.storage.blobs.s3 import S3Blobs
from exclave.wire.stacks import StackCreated
from tests.integration.api.kit import Site
from tests.support.installs import make_app, make_app_install
from tests.support.s3 import BUCKET, place, start_s3
from tests.support.toy_cloud_stack import add_toy_cloud, write_archives

pytestmark = pytest.mark.asyncio(loop_scope="module")
REGION = "eu-west-1"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with start_s3() as url:
        yield url


@pytest.fixture
def deps(shared_site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Deps:
    add_toy_cloud(monkeypatch)
    return replace(shared_site.deps, bundles=write_archives(tmp_path))


def open_bucket(endpoint: str) -> TemplateBucket:
    return TemplateBucket(S3Blobs(place(endpoint)), BUCKET, REGION)


async def create(site: Site, deps: Deps) -> StackCreated:
    name = deps.ids.new("x").replace("_", "-")
    app = await make_app(deps, site.admin.user, name, cloud="aws")
    made = await make_app_install(deps, site.admin.user, app, name, provision=False, region=REGION)
    return await stacks.create_stack(deps, site.admin.user, InstallId(made.id))


async def read_page(deps: Deps, created: StackCreated) -> str:
    app = httpx.ASGITransport(build_runner_app(deps))
    async with httpx.AsyncClient(transport=app, base_url="http://runner.test") as client:
        return (await client.get(urlsplit(created.page).path)).text


async def test_the_template_is_published_and_linked(
    shared_site: Site, deps: Deps, endpoint: str
) -> None:
    deps = replace(deps, template_bucket=open_bucket(endpoint))

    created = await create(shared_site, deps)
    page = await read_page(deps, created)

    (link,) = created.instructions.links
    file = created.files[0]
    assert link.url == f"https://{BUCKET}.s3.{REGION}.amazonaws.com/stacks/{file.sha256}.json"
    assert await S3Blobs(place(endpoint)).get(f"stacks/{file.sha256}.json") == file.content.encode()
    assert link.url in page


async def test_a_server_that_starts_later_publishes_what_is_rendered_already(
    shared_site: Site, deps: Deps, endpoint: str
) -> None:
    created = await create(shared_site, deps)
    later = replace(deps, template_bucket=open_bucket(endpoint))

    page = await read_page(later, created)

    assert created.instructions.links == []
    assert f"stacks/{created.files[0].sha256}.json" in page


async def test_a_bucket_that_does_not_answer_only_costs_the_link(
    shared_site: Site, deps: Deps, endpoint: str
) -> None:
    missing = TemplateBucket(S3Blobs(place(endpoint, bucket="nobody-made-it")), "gone", REGION)

    created = await create(shared_site, replace(deps, template_bucket=missing))

    assert created.instructions.links == []
    assert created.instructions.commands != []


@pytest.mark.parametrize("region", ["", "nowhere", "us-iso-east-1"])
async def test_a_bucket_without_a_region_is_refused_at_start(region: str) -> None:
    settings = ServerSettings(stack_bucket="templates", stack_bucket_region=region)

    with pytest.raises(InvalidInput, match="not the region") as refused:
        open_template_bucket(settings)

    assert "EXCLAVE_STACK_BUCKET_REGION" in refused.value.advice


@pytest.mark.parametrize("name", ["with.dots", "Upper", "x" * 64, "-a"])
async def test_a_name_that_no_certificate_covers_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="stack_bucket"):
        ServerSettings(stack_bucket=name)


async def test_no_bucket_is_opened_unless_one_is_named() -> None:
    assert open_template_bucket(ServerSettings()) is None
