"""Calls about apps and their config versions."""

from pathlib import Path

from exclave.client.control_http import ControlHttp, part
from exclave.wire.apps import AppReply, ConfigDiffReply, ConfigReply, NewApp, SyncReply
from exclave.wire.model import Page


class Apps:
    """Apps and their config versions. `app` is the name or the id of an app."""

    def __init__(self, http: ControlHttp) -> None:
        self._http = http

    async def list(self, cursor: str | None = None, limit: int = 100) -> Page[AppReply]:
        """Return a page of the org's apps."""
        return await self._http.list_page(AppReply, "/v1/apps", cursor, limit)

    async def create(self, body: NewApp) -> AppReply:
        """Create an app."""
        return await self._http.post(AppReply, "/v1/apps", body)

    async def get(self, app: str) -> AppReply:
        """Return an app."""
        return await self._http.get(AppReply, f"/v1/apps/{part(app)}")

    async def sync(
        self, app: str, archive: Path, *, strict: bool = False, dry_run: bool = False
    ) -> SyncReply:
        """Upload an app directory. The problem `app_invalid` lists every error found in it."""
        return await self._http.upload(
            SyncReply,
            f"/v1/apps/{part(app)}/sync",
            archive,
            strict="true" if strict else None,
            dry_run="true" if dry_run else None,
        )

    async def list_configs(
        self, app: str, cursor: str | None = None, limit: int = 100
    ) -> Page[ConfigReply]:
        """Return a page of an app's config versions, newest first."""
        path = f"/v1/apps/{part(app)}/configs"
        return await self._http.list_page(ConfigReply, path, cursor, limit)

    async def compare(self, app: str, before: int, after: int) -> ConfigDiffReply:
        """Return the differences between two config versions."""
        path = f"/v1/apps/{part(app)}/diff"
        return await self._http.get(ConfigDiffReply, path, before=before, after=after)
