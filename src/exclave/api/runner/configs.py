"""The uploaded directories of apps, for build runners."""

from fastapi.responses import StreamingResponse

from exclave.api.credentials import DepsOf, RunnerOf
from exclave.api.ids import ConfigOf
from exclave.api.routes import RunnerRoute, make_router
from exclave.base.json_values import Json
from exclave.control.apps import configs

router = make_router("/v1/configs", "configs", RunnerRoute)

_TAR: dict[int | str, dict[str, Json]] = {
    200: {
        "description": "The archive; `X-Content-Digest` is its SHA-256.",
        "content": {"application/x-tar": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.get("/{config}/archive", response_class=StreamingResponse, responses=_TAR)
async def read_archive(config: ConfigOf, who: RunnerOf, deps: DepsOf) -> StreamingResponse:
    """Return the archive that a version was synced from; for build runners of the org only."""
    digest, pieces = await configs.open_archive(deps, who, config)
    headers = {"X-Content-Digest": digest}
    return StreamingResponse(pieces, media_type="application/x-tar", headers=headers)
