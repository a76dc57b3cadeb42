"""Calls on apps that succeed for whoever may, and who may."""

import functools
import tempfile
from pathlib import Path

from exclave.control.apps import apps
from exclave.control.apps.sync import SyncWish, sync_app
from exclave.wire.apps import NewApp
from tests.integration.api.cases import Call, Make, at
from tests.integration.api.kit import Site
from tests.support.apps import in_chunks, pack, write_app

_APP = "/v1/apps/{app}"


@functools.cache
def pack_starter() -> bytes:
    """Pack the starter app."""
    with tempfile.TemporaryDirectory() as folder:
        return pack(write_app(Path(folder)))


def new_name(site: Site) -> str:
    return f"app-{site.deps.ids.new('app')[-10:]}"


async def make_app_wish(site: Site) -> Call:
    return Call("/v1/apps", {"json": {"name": new_name(site)}})


def on_app(path: str, *, content: bytes | None = None) -> Make:
    """A call on a fresh app that was synced once."""

    async def make(site: Site) -> Call:
        made = await apps.create_app(site.deps, site.admin.user, NewApp(name=new_name(site)))
        archive = in_chunks(pack_starter())
        reply = await sync_app(site.deps, site.admin.user, made.id, archive, SyncWish())
        config = reply.config.id if reply.config else ""
        rest = {} if content is None else {"content": content}
        return Call(path.replace("{app}", made.id).replace("{config}", config), rest)

    return make


@functools.cache
def pack_unasked() -> bytes:
    """Pack the starter app with another script in its action."""
    with tempfile.TemporaryDirectory() as folder:
        app = write_app(Path(folder))
        (app / "actions" / "greet.sh").write_text("#!/bin/sh\nid\n")
        return pack(app)


async def make_sync(site: Site) -> Call:
    return await on_app(f"{_APP}/sync", content=pack_starter())(site)


async def make_unasked_sync(site: Site) -> Call:
    return await on_app(f"{_APP}/sync", content=pack_unasked())(site)


#                                                          none garb expi revo view oper appr admi othe runr sibl oth build enrol
CONTROL = (
    ("GET", "/v1/apps", at("/v1/apps"),                    "401 401 401 401 200 200 200 200 200 401 401 401 401 401"),
    ("POST", "/v1/apps", make_app_wish,                    "401 401 401 401 403 201 403 201 201 401 401 401 401 401"),
    ("GET", _APP, on_app(_APP),                            "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("PUT", f"{_APP}/sync", make_sync,                     "401 401 401 401 403 200 403 200 404 401 401 401 401 401"),
    ("PUT", f"{_APP}/sync", make_unasked_sync,             "401 401 401 401 403 403 403 200 404 401 401 401 401 401"),
    ("GET", f"{_APP}/configs", on_app(f"{_APP}/configs"),  "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
    ("GET", f"{_APP}/diff", on_app(f"{_APP}/diff?before=1&after=1"),
                                                           "401 401 401 401 200 200 200 200 404 401 401 401 401 401"),
)  # fmt: skip
_ARCHIVE = "/v1/configs/{config}/archive"
RUNNER = (
    ("GET", _ARCHIVE, on_app(_ARCHIVE), "401 401 401 401 401 401 401 401 401 404 404 404 200 401"),
)
