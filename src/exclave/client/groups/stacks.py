"""Calls about the Stack of an install."""

from exclave.client.control_http import ControlHttp, part
from exclave.wire.stacks import StackCreated, StackReply


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
