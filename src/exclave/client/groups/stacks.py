"""Calls about the Stack of an install."""

from exclave.client.control_http import ControlHttp, part
from exclave.wire.stacks import StackCreated, StackDiff, StackLinks, StackReply, StackVersions


class Stacks:
    """Stacks: what a customer runs so that an install gets its runner."""

    def __init__(self, http: ControlHttp) -> None:
        self._http = http

    async def create(self, install_id: str) -> StackCreated:
        """Create a new Stack version for the customer of an install."""
        return await self._http.post(StackCreated, f"/v1/installs/{part(install_id)}/stack")

    async def get(self, install_id: str) -> StackReply:
        """Return the last report of the customer's Stack."""
        return await self._http.get(StackReply, f"/v1/installs/{part(install_id)}/stack")

    async def list_versions(self, install_id: str) -> StackVersions:
        """List the last versions of an install's Stack, newest first."""
        path = f"/v1/installs/{part(install_id)}/stack/versions"
        return await self._http.get(StackVersions, path)

    async def compare(
        self, install_id: str, before: int | None = None, after: int | None = None
    ) -> StackDiff:
        """Compare two versions; by default the one that the customer runs with the newest."""
        path = f"/v1/installs/{part(install_id)}/stack/diff"
        return await self._http.get(StackDiff, path, before=before, after=after)

    async def list_links(self, install_id: str) -> StackLinks:
        """List the links with which a customer looks at the Stack of an install."""
        return await self._http.get(StackLinks, f"/v1/installs/{part(install_id)}/stack/links")

    async def revoke_link(self, install_id: str, link_id: str) -> None:
        """Revoke a link."""
        path = f"/v1/installs/{part(install_id)}/stack/links/{part(link_id)}"
        await self._http.delete(path)
