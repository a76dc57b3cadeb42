"""Apps: create, list, show."""

from exclave.base.errors import Conflict, NotFound
from exclave.control.access import require
from exclave.control.audit import record
from exclave.control.deps import Deps
from exclave.control.pagination import clamp, make_page
from exclave.domain.apps import App, ListedApp
from exclave.domain.configs import Config
from exclave.domain.identity import OrgId, Right, ScopeKind, User, allows, list_granted
from exclave.storage import apps
from exclave.storage.engine.database import Tx
from exclave.wire.apps import AppReply, ConfigReply, NewApp
from exclave.wire.model import Page


async def create_app(deps: Deps, user: User, body: NewApp) -> AppReply:
    """Create an app that has no version yet."""
    require(user, Right.OPERATE)

    def create(tx: Tx) -> AppReply:
        if apps.find_app_named(tx, user.org, body.name) is not None:
            raise Conflict(f"there is an app named `{body.name}` already")
        app_id = deps.ids.new("app")
        apps.add_app(tx, user.org, app_id, body.name, user.name)
        record(tx, deps, user.org, user.name, "app_created", app_id, name=body.name)
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


def find_app(tx: Tx, user: User, app: str, right: Right) -> App:
    """Find an app by its id or its name, for somebody who may do this with it."""
    row = apps.find_app(tx, user.org, app) or apps.find_app_named(tx, user.org, app)
    require(user, right, app=None if row is None else row.id, noun="app")
    if row is None:
        raise NotFound(
            "there is no such app",
            hint="`exclave apps list` shows those you may see; `exclave apps create` makes one.",
        )
    return row


def show_config(config: Config, *, current: bool) -> ConfigReply:
    """Show a version of an app."""
    return ConfigReply(
        id=config.id,
        version=config.version,
        digest=config.digest,
        archive_digest=config.archive_digest,
        components=[component["name"] for component in config.outline["components"]],
        cloud=config.outline["cloud"],
        current=current,
        created_at=config.created_at,
        created_by=config.created_by,
    )


def _read(tx: Tx, org: OrgId, app_id: str) -> ListedApp:
    return apps.list_apps(tx, org, "", 1, [app_id])[0]


def _show(listed: ListedApp) -> AppReply:
    app, config = listed.app, listed.config
    return AppReply(
        id=app.id,
        name=app.name,
        created_at=app.created_at,
        created_by=app.created_by,
        installs=listed.installs,
        config=None if config is None else show_config(config, current=True),
    )
