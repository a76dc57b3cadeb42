"""Calls about builds."""

from exclave.client.control_http import ControlHttp
from exclave.client.control_http import part as path_part
from exclave.wire.builds import BuildReply, NewBuild
from exclave.wire.model import Page


class Builds:
    """Builds of app components."""

    def __init__(self, http: ControlHttp) -> None:
        self._http = http

    async def list(
        self,
        cursor: str | None = None,
        limit: int = 100,
        *,
        app: str | None = None,
        part: str | None = None,
        state: str | None = None,
    ) -> Page[BuildReply]:
        """Return a page of builds, newest first."""
        return await self._http.list_page(
            BuildReply, "/v1/builds", cursor, limit, app=app, part=part, state=state
        )

    async def get(self, build: str) -> BuildReply:
        """Return a build."""
        return await self._http.get(BuildReply, f"/v1/builds/{path_part(build)}")

    async def create(self, body: NewBuild) -> BuildReply:
        """Start a build of a component."""
        return await self._http.post(BuildReply, "/v1/builds", body)
