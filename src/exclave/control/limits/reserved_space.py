"""Bytes of an org's quota that are reserved for one request body while it arrives.

They are counted on the row of the upload too, so that whatever a dead server had set aside is
released when its upload is collected.
"""

from exclave.base.errors import Problem
from exclave.base.logs import Log
from exclave.control.deps import Deps
from exclave.control.limits import quotas
from exclave.domain.quotas import QuotaExceeded, Stored
from exclave.domain.registry import Place, UploadUnknown
from exclave.storage import registry_blobs
from exclave.storage.engine.database import Tx

log = Log("registry")

_FIRST_STEP = 1 << 20
_LONGEST_STEP = 16 << 20
"""A body of unknown size is given room in steps: each costs a commit."""


class UploadSpace:
    """The reservation for a body that is not yet part of its upload."""

    def __init__(self, deps: Deps, place: Place, upload: str) -> None:
        self._deps = deps
        self._place = place
        self._upload = upload
        self._held = 0

    async def need(self, size: int) -> None:
        """Reserve space for so many bytes of the body; `QuotaExceeded` if the org has none left."""
        missing = size - self._held
        if missing <= 0:
            return
        ahead = min(max(self._held, _FIRST_STEP), _LONGEST_STEP) if self._held else 0
        try:
            await self._add(max(missing, ahead))
        except QuotaExceeded:
            if ahead <= missing:
                raise
            await self._add(missing)

    def keep(self, size: int) -> None:
        """Transfer the bytes of a stored piece from the reservation to the upload."""
        self._held -= size

    async def release_rest(self) -> None:
        """Release the unused rest; if that fails, it is released with the upload."""
        held, self._held = self._held, 0
        if held == 0:
            return
        try:
            await self._deps.db.write(lambda tx: self._release(tx, held), key=self._place.org)
        except Problem as problem:
            log.warning("upload_space_kept", code=problem.code, bytes=held)

    async def _add(self, size: int) -> None:
        await self._deps.db.write(lambda tx: self._set_aside(tx, size), key=self._place.org)
        self._held += size

    def _set_aside(self, tx: Tx, size: int) -> None:
        place = self._place
        # The row of the upload always first, then that of the quota: who waits never blocks.
        if not registry_blobs.reserve_upload(tx, place.org, place.repository, self._upload, size):
            raise UploadUnknown("there is no such upload")
        quotas.reserve(tx, self._deps, place.org, Stored.REGISTRY, size)

    def _release(self, tx: Tx, size: int) -> None:
        place = self._place
        if registry_blobs.reserve_upload(tx, place.org, place.repository, self._upload, -size):
            quotas.release(tx, place.org, Stored.REGISTRY, size)
