"""Apps, their config versions, and syncing."""

from fastapi import Request

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.idempotency import idempotent
from exclave.api.ids import AppOf
from exclave.api.queries import DiffOf, PageOf, SyncOf
from exclave.api.routes import UserRoute, make_router
from exclave.base.json_values import Json
from exclave.control.apps import apps, configs, sync
from exclave.wire.apps import AppReply, ConfigDiffReply, ConfigReply, NewApp, SyncReply
from exclave.wire.model import Page

router = make_router("/v1/apps", "apps", UserRoute)

_TAR: dict[str, Json] = {
    "requestBody": {
        "required": True,
        "description": "The app directory as a tar archive, up to 64 MiB.",
        "content": {"application/x-tar": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.get("")
async def list_apps(page: PageOf, user: UserOf, deps: DepsOf) -> Page[AppReply]:
    """List the org's apps, oldest first."""
    return await apps.list_apps(deps, user, page.cursor, page.limit)


@router.post("", status_code=201)
@idempotent()
async def create_app(body: NewApp, user: UserOf, deps: DepsOf) -> AppReply:
    """Create an app that has no version yet."""
    return await apps.create_app(deps, user, body)


@router.get("/{app}")
async def show_app(app: AppOf, user: UserOf, deps: DepsOf) -> AppReply:
    """Show an app, by its id or its name."""
    return await apps.show_app(deps, user, app)


@router.put("/{app}/sync", openapi_extra=_TAR)
async def sync_app(
    app: AppOf, query: SyncOf, user: UserOf, deps: DepsOf, request: Request
) -> SyncReply:
    """Upload an app directory: one transaction stores a version and starts its builds, or nothing.

    422 `app_invalid` lists everything that is wrong in `diagnostics`. Content that is the same as
    that of the current version changes nothing, so a repeated request is harmless.
    """
    body = sync.SyncWish(strict=query.strict, dry_run=query.dry_run)
    return await sync.sync_app(deps, user, app, request.stream(), body)


@router.get("/{app}/configs")
async def list_configs(app: AppOf, page: PageOf, user: UserOf, deps: DepsOf) -> Page[ConfigReply]:
    """List the versions of an app, newest first."""
    return await configs.list_configs(deps, user, app, page.cursor, page.limit)


@router.get("/{app}/diff")
async def compare_configs(app: AppOf, query: DiffOf, user: UserOf, deps: DepsOf) -> ConfigDiffReply:
    """Show what differs between two versions, and which installs the newer one would change."""
    return await configs.compare_configs(deps, user, app, query.before, query.after)
