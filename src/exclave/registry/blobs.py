"""Blobs over HTTP: whole or in ranges, always streamed."""

import re
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from exclave.control.registry import blobs
from exclave.registry.credentials import admit, deps_of

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_TYPE = "application/octet-stream"


async def pull(request: Request) -> Response:
    """Send a blob or the requested range of it; for HEAD, only the headers."""
    scope = await admit(request)
    name, digest = request.path_params["name"], request.path_params["digest"]
    deps = deps_of(request)
    blob = await blobs.find_blob(deps, scope, name, digest)
    headers = {
        "Accept-Ranges": "bytes",
        "Docker-Content-Digest": digest,
        "ETag": f'"{digest}"',
        "Content-Type": _TYPE,
    }
    if request.method == "HEAD":
        return Response(headers={**headers, "Content-Length": str(blob.size)})
    start, end = 0, blob.size
    status = HTTPStatus.OK
    if span := read_range(request, blob.size, headers["ETag"]):
        start, end = span
        status = HTTPStatus.PARTIAL_CONTENT
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{blob.size}"
    headers["Content-Length"] = str(end - start)
    chunks = blobs.read_blob(deps, blob, start, end - start)
    return StreamingResponse(chunks, status_code=status, headers=headers)


async def delete(request: Request) -> Response:
    """Delete a blob from a repository."""
    scope = await admit(request)
    name, digest = request.path_params["name"], request.path_params["digest"]
    await blobs.delete_blob(deps_of(request), scope, name, digest)
    return Response(status_code=HTTPStatus.ACCEPTED)


def read_range(request: Request, size: int, etag: str) -> tuple[int, int] | None:
    """Return the requested range of bytes, end excluded; None means all.

    Multiple ranges, other units and ranges of another version are answered with all.
    """
    match = _RANGE.fullmatch(request.headers.get("range", ""))
    if match is None or request.headers.get("if-range", etag) != etag:
        return None
    first, last = match[1], match[2]
    if not first and not last:
        return None
    if first:
        start = int(first)
        end = min(int(last) + 1, size) if last else size
        if last and int(last) < start:
            return None
    else:
        start, end = max(0, size - int(last)), size
    if start >= end:
        headers = {"Content-Range": f"bytes */{size}"}
        raise HTTPException(
            HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, "the range lies outside", headers
        )
    return start, end
