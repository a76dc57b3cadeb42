"""Lists come in pages: each thing once, in order, whatever the size of the page."""

import pytest

from tests.integration.api.kit import Site, enrol
from tests.support.world import job, make_install, run_workflow

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def site(shared_site: Site) -> Site:
    return shared_site


async def walk(site: Site, path: str, limit: int) -> list[str]:
    found: list[str] = []
    cursor = ""
    for _ in range(100):
        sign = "&" if "?" in path else "?"
        page = (await site.call("GET", f"{path}{sign}limit={limit}&cursor={cursor}")).json()
        assert len(page["items"]) <= limit
        found += [item["id"] for item in page["items"]]
        if page["next"] is None:
            return found
        cursor = page["next"]
    raise AssertionError("the list has no end")


@pytest.mark.parametrize(
    "path", ["/v1/workflows", "/v1/jobs", "/v1/installs", "/v1/runners", "/v1/tokens", "/v1/audit"]
)
async def test_pages_of_any_size_show_everything_once(site: Site, path: str) -> None:
    for number in range(3):
        site.clock.advance(0.01)
        queue = await make_install(site.deps, site.admin.user, f"i{path[4:7]}{number}")
        await enrol(site.deps, site.admin.user, queue)
        await run_workflow(site.deps, site.admin.user, queue, job("a"), job("b"))
        token = {"name": "t", "account": "a", "grants": [{"role": "viewer"}]}
        await site.call("POST", "/v1/tokens", json=token)

    whole = await walk(site, path, 200)

    assert len(whole) == len(set(whole)) >= 3
    assert whole in (sorted(whole), sorted(whole, reverse=True))
    for limit in (1, 2, len(whole), len(whole) + 1):
        assert await walk(site, path, limit) == whole


async def test_filters_narrow_a_list(site: Site) -> None:
    queue = await make_install(site.deps, site.admin.user, "filtered")
    flow = await run_workflow(site.deps, site.admin.user, queue, job("a"), job("b", "a"))

    by_queue = await walk(site, f"/v1/workflows?queue_id={queue}", 10)
    by_state = await walk(site, f"/v1/workflows?queue_id={queue}&state=succeeded", 10)
    jobs = await walk(site, f"/v1/jobs?workflow_id={flow.id}&state=queued", 10)
    runners = await walk(site, f"/v1/runners?queue_id={queue}", 10)

    assert by_queue == [flow.id]
    assert by_state == []
    assert jobs == [flow.steps[0].job_id]
    assert runners == []
