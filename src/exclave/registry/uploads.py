"""Uploads over HTTP: in one request, in two, or in chunks."""

import re
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from exclave.control.registry import blobs, uploads
from exclave.domain.registry import DigestInvalid, UploadInvalid, UploadUnknown
from exclave.domain.uploads import Upload
from exclave.registry.bodies import Body
from exclave.registry.credentials import admit, deps_of
from exclave.registry.problems import write_progress

_RANGE = re.compile(r"(?:bytes )?(\d{1,18})-(\d{1,18})(?:/\S*)?")
_ID = re.compile(r"upl_[0-9a-z]{26}")
_ID_HEADER = "Docker-Upload-Uuid"


async def begin(request: Request) -> Response:
    """Begin an upload, mount a blob of another repository, or store a blob in one request."""
    scope = await admit(request)
    deps, name, query = deps_of(request), request.path_params["name"], request.query_params
    if "mount" in query:
        digest, source = query["mount"], query.get("from", "")
        if source and await blobs.mount_blob(deps, scope, name, digest, source):
            return _created(name, digest)
    upload = await uploads.begin_upload(deps, scope, name)
    if "digest" in query and "mount" not in query:
        digest = query["digest"]
        await uploads.finish(deps, scope, name, upload.id, digest, Body(request))
        return _created(name, digest)
    return _progress(HTTPStatus.ACCEPTED, name, upload)


async def show(request: Request) -> Response:
    """Return an upload and how much of it has arrived."""
    scope = await admit(request)
    name = request.path_params["name"]
    upload = await uploads.show_upload(deps_of(request), scope, name, _read_id(request))
    return _progress(HTTPStatus.NO_CONTENT, name, upload)


async def append(request: Request) -> Response:
    """Append a chunk to an upload."""
    scope = await admit(request)
    name = request.path_params["name"]
    start, size = read_place(request)
    upload = await uploads.append(
        deps_of(request), scope, name, _read_id(request), Body(request), start=start, size=size
    )
    return _progress(HTTPStatus.ACCEPTED, name, upload)


async def finish(request: Request) -> Response:
    """Append the last chunk, if there is one, and turn the upload into a blob."""
    scope = await admit(request)
    name = request.path_params["name"]
    digest = request.query_params.get("digest")
    if digest is None:
        raise DigestInvalid("the digest of the blob is missing")
    start, size = read_place(request)
    await uploads.finish(
        deps_of(request),
        scope,
        name,
        _read_id(request),
        digest,
        Body(request),
        start=start,
        size=size,
    )
    return _created(name, digest)


async def cancel(request: Request) -> Response:
    """Cancel an upload."""
    scope = await admit(request)
    name = request.path_params["name"]
    await uploads.cancel_upload(deps_of(request), scope, name, _read_id(request))
    return Response(status_code=HTTPStatus.NO_CONTENT)


def read_place(request: Request) -> tuple[int | None, int | None]:
    """Return the offset and the size of a chunk, as far as the client announced them."""
    announced = request.headers.get("content-range")
    if announced is None:
        return None, None
    match = _RANGE.fullmatch(announced)
    if match is None or int(match[2]) < int(match[1]):
        raise UploadInvalid("`Content-Range` must be `<first>-<last>`")
    size = int(match[2]) - int(match[1]) + 1
    length = request.headers.get("content-length")
    if length is not None and length != str(size):
        raise UploadInvalid("`Content-Length` differs from `Content-Range`")
    return int(match[1]), size


def _read_id(request: Request) -> str:
    upload: str = request.path_params["upload"]
    if not _ID.fullmatch(upload):
        raise UploadUnknown("there is no such upload")
    return upload


def _progress(status: HTTPStatus, name: str, upload: Upload) -> Response:
    headers = write_progress(f"/v2/{name}/blobs/uploads/{upload.id}", upload.size)
    return Response(status_code=status, headers={**headers, _ID_HEADER: upload.id})


def _created(name: str, digest: str) -> Response:
    headers = {"Location": f"/v2/{name}/blobs/{digest}", "Docker-Content-Digest": digest}
    return Response(status_code=HTTPStatus.CREATED, headers=headers)
