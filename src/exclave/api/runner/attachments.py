"""Files that an execution uploads, and that a later one of the same install reads."""

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from exclave.api.credentials import DepsOf, RunnerOf
from exclave.api.ids import ExecutionOf
from exclave.api.queries import EpochOf
from exclave.api.routes import RunnerRoute, make_router
from exclave.base.json_values import Json
from exclave.control.workflows import attachments
from exclave.wire.terraform import AttachmentName, AttachmentReply

router = make_router("/v1/executions/{execution}/attachments", "attachments", RunnerRoute)

_BYTES = {"schema": {"type": "string", "format": "binary"}}
_FILE: dict[str, Json] = {
    "requestBody": {
        "required": True,
        "description": "The file, up to 68 MiB.",
        "content": {"application/octet-stream": _BYTES},
    }
}


@router.put("/{name}", openapi_extra=_FILE)
async def put_attachment(
    execution: ExecutionOf,
    name: AttachmentName,
    query: EpochOf,
    who: RunnerOf,
    deps: DepsOf,
    request: Request,
) -> AttachmentReply:
    """Upload a file. The same name again replaces it; 409 `superseded` means: too late."""
    body = request.stream()
    return await attachments.put_attachment(deps, who, execution, name, query.epoch, body)


@router.get(
    "/{name}",
    response_class=Response,
    responses={200: {"content": {"application/octet-stream": _BYTES}, "description": "The file."}},
)
async def get_attachment(
    execution: ExecutionOf, name: AttachmentName, who: RunnerOf, deps: DepsOf
) -> Response:
    """Return a file that an execution of the same install uploaded."""
    data = await attachments.get_for_runner(deps, who, execution, name)
    return StreamingResponse(data, media_type="application/octet-stream")
