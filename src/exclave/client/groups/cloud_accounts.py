"""Calls about the accounts in clouds that installs are pinned to."""

from exclave.client.control_http import ControlHttp, part
from exclave.wire.cloud_accounts import CloudAccountReply, ConfirmAccount, ResetAccount


class CloudAccounts:
    """Whose machine may be the runner of an install."""

    def __init__(self, http: ControlHttp) -> None:
        self._http = http

    async def get(self, install_id: str) -> CloudAccountReply:
        """Return the account that an install is pinned to."""
        return await self._http.get(CloudAccountReply, _find(install_id))

    async def confirm(self, install_id: str, body: ConfirmAccount) -> CloudAccountReply:
        """Confirm the account that a one-time code pinned."""
        return await self._http.post(CloudAccountReply, f"{_find(install_id)}/confirm", body)

    async def reset(self, install_id: str, body: ResetAccount) -> CloudAccountReply:
        """Forget the pinned account, or put another in its place."""
        return await self._http.post(CloudAccountReply, f"{_find(install_id)}/reset", body)


def _find(install_id: str) -> str:
    return f"/v1/installs/{part(install_id)}/account"
