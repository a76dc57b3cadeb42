"""The routes of Stacks x every kind of caller."""

from urllib.parse import urlsplit

from exclave.control.stacks import stacks
from exclave.control.stacks.runner_package import load_package
from exclave.domain.identity import InstallId, QueueId
from tests.integration.api.cases import Call, Make, at
from tests.integration.api.cases_installs import make_fresh, on_install
from tests.integration.api.kit import Site, enrol

_STACK = "/v1/installs/{install}/stack"
_PACKAGE = f"/v1/stacks/package/{load_package().file}"
_REPORT = {"facts": {"hostname": "box"}}


async def make_fetch(site: Site) -> Call:
    _, install = await make_fresh(site)
    made = await stacks.create_stack(site.deps, site.admin.user, InstallId(install))
    return Call(urlsplit(made.files[0].url).path)


def by_its_runner(path: str, body: object) -> Make:
    """A call by the runner of a fresh install of an app."""

    async def make(site: Site) -> Call:
        _, install = await make_fresh(site)
        own = await enrol(site.deps, site.admin.user, QueueId(install))
        return Call(path, {"json": body}, own.token)

    return make


#                                                                   none garb expi revo view oper appr admi othe runr sibl oth build enrol
CONTROL = (
    ("GET", _STACK, on_install(_STACK), "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("POST", _STACK, on_install(_STACK), "401 401 401 401 403 201 403 201 404 401 401 401 401 401"),
)
RUNNER = (
    (
        "GET",
        "/v1/stacks/{code}/{file}",
        make_fetch,
        "200 200 200 200 200 200 200 200 200 200 200 200 200 200",
    ),
    (
        "GET",
        "/v1/stacks/package/{file}",
        at(_PACKAGE),
        "200 200 200 200 200 200 200 200 200 200 200 200 200 200",
    ),
    (
        "POST",
        "/v1/stack/report",
        by_its_runner("/v1/stack/report", _REPORT),
        "401 401 401 401 401 401 401 401 401 200 404 404 404 401",
    ),
    (
        "POST",
        "/v1/stack/resign",
        by_its_runner("/v1/stack/resign", {}),
        "401 401 401 401 401 401 401 401 401 200 404 404 404 401",
    ),
)
