"""Calls about the token's org."""

from exclave.client.control_http import ControlHttp
from exclave.wire.identity import FourEyesReply, NewOrg, OrgCreated, OrgReply, SetFourEyes
from exclave.wire.usage import UsageReply


class Orgs:
    """The org that the token belongs to."""

    def __init__(self, http: ControlHttp) -> None:
        self._http = http

    async def get(self) -> OrgReply:
        """Return the token's org."""
        return await self._http.get(OrgReply, "/v1/org")

    async def create(self, body: NewOrg) -> OrgCreated:
        """Create an org; the reply holds the first token of its admin."""
        return await self._http.post(OrgCreated, "/v1/orgs", body)

    async def get_usage(self) -> UsageReply:
        """Return the org's usage and its limits."""
        return await self._http.get(UsageReply, "/v1/org/usage")

    async def get_four_eyes(self) -> FourEyesReply:
        """Return whether every change needs two people."""
        return await self._http.get(FourEyesReply, "/v1/org/four-eyes")

    async def set_four_eyes(self, body: SetFourEyes) -> FourEyesReply:
        """Require two people for every change, or ask to end that."""
        return await self._http.put(FourEyesReply, "/v1/org/four-eyes", body)
