"""Refuse large requests while the disk is nearly full; small ones are still served."""

from starlette.requests import Request

from exclave.control.deps import Deps
from exclave.domain.quotas import DiskFull

_SMALL = 1 << 16


def refuse_large(deps: Deps, request: Request) -> None:
    """Refuse a body that is large, or may be, when only the reserve of the disk is left."""
    headers = request.headers
    length = headers.get("content-length", "")
    is_small = length.isdecimal() and len(length) <= len(str(_SMALL)) and int(length) <= _SMALL
    if is_small or ("transfer-encoding" not in headers and not length):
        return
    if deps.disk is not None and not deps.disk.has_room():
        raise DiskFull("the disk of the control plane is nearly full")
