"""Calls about apps and their config versions."""

from pathlib import Path

from exclave.client.control_http import ControlCalls, part
from exclave.wire.apps import AppReply, ConfigDiffReply, ConfigReply, NewApp, SyncReply
from exclave.wire.model import Page


class AppCalls:
    """Apps: create, list, sync, compare. An app is named by its id or its name."""

    def __init__(self, calls: ControlCalls) -> None:
        self._calls = calls

    async def list_apps(self, cursor: str | None = None, limit: int = 100) -> Page[AppReply]:
        """Read a page of the org's apps."""
        return await self._calls.get(Page[AppReply], "/v1/apps", cursor=cursor, limit=limit)

    async def create_app(self, body: NewApp) -> AppReply:
        """Make an app."""
        return await self._calls.post(AppReply, "/v1/apps", body)

    async def get_app(self, app: str) -> AppReply:
        """Read an app."""
        return await self._calls.get(AppReply, f"/v1/apps/{part(app)}")

    async def sync(
        self, app: str, archive: Path, *, strict: bool = False, dry_run: bool = False
    ) -> SyncReply:
        """Upload an app directory; 422 `app_invalid` lists what is wrong with it."""
        return await self._calls.upload(
            SyncReply,
            f"/v1/apps/{part(app)}/sync",
            archive,
            strict="true" if strict else None,
            dry_run="true" if dry_run else None,
        )

    async def list_configs(
        self, app: str, cursor: str | None = None, limit: int = 100
    ) -> Page[ConfigReply]:
        """Read a page of an app's versions, newest first."""
        path = f"/v1/apps/{part(app)}/configs"
        return await self._calls.get(Page[ConfigReply], path, cursor=cursor, limit=limit)

    async def compare(self, app: str, before: int, after: int) -> ConfigDiffReply:
        """Read what differs between two versions."""
        path = f"/v1/apps/{part(app)}/diff"
        return await self._calls.get(ConfigDiffReply, path, before=before, after=after)
