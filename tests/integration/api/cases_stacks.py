"""The routes of Stacks x every kind of caller."""

from datetime import timedelta
from urllib.parse import urlsplit

from exclave.control.stack_versions.stored_models import NO_PROGRAM, write_model
from exclave.control.stacks import stacks
from exclave.control.stacks.runner_package import load_package
from exclave.domain.identity import InstallId, QueueId
from exclave.domain.stacks import Cloud, StackView
from exclave.stacks.model import AccountPin, StackModel
from exclave.storage import stack_views
from exclave.storage import stacks as queries
from exclave.storage.engine.database import Tx
from exclave.wire.stacks import StackReport
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


async def make_link_to_revoke(site: Site) -> Call:
    """A call that revokes a fresh link."""
    _, install = await make_fresh(site)
    view = StackView(
        org=site.admin.user.org,
        id=site.deps.ids.new("stl"),
        install_id=install,
        created_by="test",
        created_at=site.clock.now(),
        expires_at=site.clock.now() + timedelta(days=1),
    )
    await site.deps.db.write(lambda tx: stack_views.add_view(tx, view, view.id))
    return Call(f"/v1/installs/{install}/stack/links/{view.id}")


async def make_versions_to_compare(site: Site) -> Call:
    """A call that compares a version with itself."""
    _, install = await make_fresh(site)
    org = site.admin.user.org
    model = StackModel(
        install_id=install,
        install="acme",
        org_id=org,
        app="shop",
        cloud=Cloud.AWS,
        account=AccountPin("eu-west-1"),
        stack_name="acme",
        description="",
        runner_url="https://r.test",
        keys=(),
        program=NO_PROGRAM,
    )

    def store(tx: Tx) -> None:
        newest = queries.find_newest(tx, org, install)
        assert newest is not None
        queries.store_model(tx, org, newest.id, "0" * 64, write_model(model))

    await site.deps.db.write(store)
    return Call(f"/v1/installs/{install}/stack/diff?before=1")


async def make_leaving(site: Site) -> Call:
    """A call by the runner of an install whose Stack has reported a digest."""
    _, install = await make_fresh(site)
    own = await enrol(site.deps, site.admin.user, QueueId(install))
    await stacks.report_stack(site.deps, own.peer.who, StackReport(facts={}))
    org = site.admin.user.org

    def apply(tx: Tx) -> None:
        run = queries.find_run(tx, org, install)
        assert run is not None
        queries.store_applied(tx, org, run.id, "0" * 64, tx.now, {})

    await site.deps.db.write(apply)
    return Call("/v1/stack/leaving", {"json": {"reason": "stopping"}}, own.token)


#                                                                   none garb expi revo view oper appr admi othe runr sibl oth build enrol
CONTROL = (
    ("GET", _STACK, on_install(_STACK), "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("POST", _STACK, on_install(_STACK), "401 401 401 401 403 201 403 201 404 401 401 401 401 401"),
    (
        "GET",
        f"{_STACK}/versions",
        on_install(f"{_STACK}/versions"),
        "401 401 401 401 200 200 200 200 404 401 401 401 401 401",
    ),
    (
        "GET",
        f"{_STACK}/diff",
        make_versions_to_compare,
        "401 401 401 401 200 200 200 200 404 401 401 401 401 401",
    ),
    (
        "GET",
        f"{_STACK}/links",
        on_install(f"{_STACK}/links"),
        "401 401 401 401 200 200 200 200 404 401 401 401 401 401",
    ),
    (
        "DELETE",
        f"{_STACK}/links/{{link}}",
        make_link_to_revoke,
        "401 401 401 401 403 204 403 204 404 401 401 401 401 401",
    ),
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
        "/v1/stack/progress/{install}",
        on_install("/v1/stack/progress/{install}", json={"stage": "booted"}),
        "204 204 204 204 204 204 204 204 204 204 204 204 204 204",
    ),
    (
        "GET",
        "/v1/stack/program",
        at("/v1/stack/program"),  # 404: a server without archives of the program
        "401 401 401 401 401 401 401 401 401 404 404 404 404 401",
    ),
    (
        "POST",
        "/v1/stack/leaving",
        make_leaving,
        "401 401 401 401 401 401 401 401 401 204 404 404 404 401",
    ),
    (
        "POST",
        "/v1/stack/resign",
        by_its_runner("/v1/stack/resign", {}),
        "401 401 401 401 401 401 401 401 401 200 404 404 404 401",
    ),
)
