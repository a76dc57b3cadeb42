"""The Control API's calls about builds."""

from exclave.client.control_http import ControlCalls
from exclave.client.control_http import part as path_part
from exclave.wire.builds import BuildReply, NewBuild
from exclave.wire.model import Page


class BuildCalls:
    """Lists, shows and begins builds."""

    def __init__(self, calls: ControlCalls) -> None:
        self._calls = calls

    async def list_builds(
        self,
        cursor: str | None = None,
        limit: int = 100,
        *,
        app: str | None = None,
        part: str | None = None,
        state: str | None = None,
    ) -> Page[BuildReply]:
        """List builds, newest first."""
        return await self._calls.get(
            Page[BuildReply],
            "/v1/builds",
            cursor=cursor,
            limit=limit,
            app=app,
            part=part,
            state=state,
        )

    async def get_build(self, build: str) -> BuildReply:
        """Show a build."""
        return await self._calls.get(BuildReply, f"/v1/builds/{path_part(build)}")

    async def create_build(self, wish: NewBuild) -> BuildReply:
        """Build a part again."""
        return await self._calls.post(BuildReply, "/v1/builds", wish)
