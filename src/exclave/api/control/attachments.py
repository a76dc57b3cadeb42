"""Files of a job that users may read: its plan and its journal."""

from typing import Literal

from fastapi import Response
from fastapi.responses import StreamingResponse

from exclave.api.credentials import DepsOf, UserOf
from exclave.api.ids import JobOf
from exclave.api.routes import UserRoute, make_router
from exclave.control.workflows import attachments

router = make_router("/v1/jobs/{job}/attachments", "jobs", UserRoute)

_TYPES = {"plan.json": "application/json", "journal.jsonl": "application/jsonl"}


@router.get(
    "/{name}",
    response_class=Response,
    responses={
        200: {
            "description": "The plan as people read it, or one JSON object per line.",
            "content": {"application/json": {}, "application/jsonl": {}},
        }
    },
)
async def get_job_attachment(
    job: JobOf, name: Literal["plan.json", "journal.jsonl"], user: UserOf, deps: DepsOf
) -> Response:
    """Return the plan or the journal of a job; both were redacted on the runner."""
    data = await attachments.get_for_user(deps, user, job, name)
    return StreamingResponse(data, media_type=_TYPES[name])
