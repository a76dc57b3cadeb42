"""Calls on builds that succeed for whoever may, and who may."""

from exclave.control.apps import apps
from exclave.control.apps.sync import SyncWish, sync_app
from exclave.control.builds import builds
from exclave.wire.apps import NewApp
from tests.integration.api.cases import Call, at
from tests.integration.api.cases_apps import new_name, pack_starter
from tests.integration.api.kit import Site
from tests.support.apps import in_chunks

_BUILD = "/v1/builds/{build}"


async def make_synced(site: Site) -> str:
    """Sync a fresh app; answer its name."""
    user = site.admin.user
    made = await apps.create_app(site.deps, user, NewApp(name=new_name(site)))
    await sync_app(site.deps, user, made.id, in_chunks(pack_starter()), SyncWish())
    return made.name


async def make_build_wish(site: Site) -> Call:
    wish = {"app": await make_synced(site), "part": "sandbox"}
    return Call("/v1/builds", {"json": wish})


async def make_build_to_show(site: Site) -> Call:
    page = await builds.list_builds(
        site.deps,
        site.admin.user,
        cursor="",
        limit=1,
        app=await make_synced(site),
        part=None,
        state=None,
    )
    return Call(f"/v1/builds/{page.items[0].id}")


#                                                          none garb expi revo view oper appr admi othe runr sibl oth build enrol
CONTROL = (
    (
        "GET",
        "/v1/builds",
        at("/v1/builds"),
        "401 401 401 401 200 200 200 200 200 401 401 401 401 401",
    ),
    (
        "POST",
        "/v1/builds",
        make_build_wish,
        "401 401 401 401 403 202 403 202 404 401 401 401 401 401",
    ),
    ("GET", _BUILD, make_build_to_show, "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
)
