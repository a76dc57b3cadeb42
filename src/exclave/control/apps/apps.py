"""Apps: create, list, show."""

from exclave.base.errors import Conflict, NotFound
from exclave.control.access import require
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.pagination import clamp, make_page
from exclave.domain.identity import OrgId, Right, ScopeKind, User, allows, list_granted
from exclave.storage import apps
from exclave.storage.engine.database import AnyRow, Tx
from exclave.wire.apps import AppReply, ConfigReply, NewApp
from exclave.wire.model import Page


async def create_app(deps: Deps, user: User, wish: NewApp) -> AppReply:
    """Create an app that has no version yet."""
    require(user, Right.OPERATE)

    def create(tx: Tx) -> AppReply:
        if apps.find_app_named(tx, user.org, wish.name) is not None:
            raise Conflict(f"there is an app named `{wish.name}` already")
        app_id = deps.ids.new("app")
        apps.add_app(tx, user.org, app_id, wish.name, user.name)
        record(tx, deps, user.org, user.name, "app_created", app_id, name=wish.name)
        return _show(_read(tx, user.org, app_id))

    return await deps.db.write(create)


async def list_apps(deps: Deps, user: User, cursor: str, limit: int) -> Page[AppReply]:
    """List the org's apps, or those that the caller has been given."""
    only = None if allows(user, Right.READ) else list_granted(user, ScopeKind.APP)
    if only == []:
        require(user, Right.READ)
    wanted = clamp(limit)
    rows = await deps.db.read(lambda tx: apps.list_apps(tx, user.org, cursor, wanted + 1, only))
    return make_page(rows, wanted, _show)


async def show_app(deps: Deps, user: User, app: str) -> AppReply:
    """Show an app, by its id or its name."""
    return await deps.db.read(
        lambda tx: _show(_read(tx, user.org, find_app(tx, user, app, Right.READ).id))
    )


def find_app(tx: Tx, user: User, app: str, right: Right) -> AnyRow:
    """Find an app by its id or its name, for somebody who may do this with it."""
    row = apps.find_app(tx, user.org, app) or apps.find_app_named(tx, user.org, app)
    require(user, right, app=None if row is None else row.id, noun="app")
    if row is None:
        raise NotFound(
            "there is no such app",
            hint="`exclave apps list` shows those you may see; `exclave apps create` makes one.",
        )
    return row


def show_config(row: AnyRow, *, current: bool) -> ConfigReply:
    """Show a version of an app."""
    return ConfigReply(
        id=row.id,
        version=row.version,
        digest=row.digest,
        archive_digest=row.archive_digest,
        components=[each["name"] for each in row.outline["components"]],
        cloud=row.outline["cloud"],
        current=current,
        created_at=row.created_at,
        created_by=row.created_by,
    )


def _read(tx: Tx, org: OrgId, app_id: str) -> AnyRow:
    return apps.list_apps(tx, org, "", 1, [app_id])[0]


def _show(row: AnyRow) -> AppReply:
    config = None
    if row.config_id is not None:
        config = ConfigReply(
            id=row.config_id,
            version=row.version,
            digest=row.digest,
            archive_digest=row.archive_digest,
            cloud=row.outline["cloud"],
            current=True,
            components=[each["name"] for each in row.outline["components"]],
            created_at=row.synced_at,
            created_by=row.synced_by,
        )
    return AppReply(
        id=row.id,
        name=row.name,
        created_at=row.created_at,
        created_by=row.created_by,
        installs=row.installs,
        config=config,
    )
