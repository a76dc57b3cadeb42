"""Manifests, tags and referrers over HTTP."""

import json
from http import HTTPStatus
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from exclave.base.errors import InvalidInput
from exclave.base.json_values import Json, JsonObject
from exclave.control.registry import manifests
from exclave.control.registry.manifests import MOST_TAGS
from exclave.domain.manifests import MAX_MANIFEST, OCI_INDEX, Referrer
from exclave.domain.registry import is_digest, is_tag
from exclave.registry.bodies import read_small
from exclave.registry.credentials import admit, deps_of

_MOST_DIGITS = 9


async def pull(request: Request) -> Response:
    """Send a manifest; for HEAD, only the headers."""
    scope = await admit(request)
    name, reference = request.path_params["name"], request.path_params["reference"]
    manifest = await manifests.pull_manifest(deps_of(request), scope, name, reference)
    headers = {
        "Docker-Content-Digest": manifest.digest,
        "ETag": f'"{manifest.digest}"',
        "Content-Type": manifest.media_type,
        "Content-Length": str(len(manifest.content)),
    }
    return Response(b"" if request.method == "HEAD" else manifest.content, headers=headers)


async def push(request: Request) -> Response:
    """Store a manifest."""
    scope = await admit(request)
    name, reference = request.path_params["name"], request.path_params["reference"]
    kind = request.headers.get("content-type", "").partition(";")[0].strip()
    content = await read_small(request, MAX_MANIFEST)
    pushed = await manifests.push_manifest(deps_of(request), scope, name, reference, kind, content)
    headers = {
        "Location": f"/v2/{name}/manifests/{pushed.digest}",
        "Docker-Content-Digest": pushed.digest,
    }
    if pushed.subject is not None:
        headers["OCI-Subject"] = pushed.subject
    return Response(status_code=HTTPStatus.CREATED, headers=headers)


async def delete(request: Request) -> Response:
    """Delete a tag or a manifest."""
    scope = await admit(request)
    name, reference = request.path_params["name"], request.path_params["reference"]
    await manifests.delete_manifest(deps_of(request), scope, name, reference)
    return Response(status_code=HTTPStatus.ACCEPTED)


async def list_tags(request: Request) -> Response:
    """List the tags of a repository, in pages."""
    scope = await admit(request)
    name, last = request.path_params["name"], request.query_params.get("last", "")
    if last and not is_tag(last):
        raise InvalidInput("`last` must be a tag")
    wanted = _read_count(request)
    tags, more = await manifests.list_tags(deps_of(request), scope, name, last, wanted)
    headers = {}
    if more:
        query = urlencode({"n": min(wanted, MOST_TAGS), "last": tags[-1]})
        headers["Link"] = f'</v2/{name}/tags/list?{query}>; rel="next"'
    return _write({"name": name, "tags": tags}, "application/json", headers)


async def list_referrers(request: Request) -> Response:
    """List the manifests that refer to one, optionally of one artifact type."""
    scope = await admit(request)
    name, digest = request.path_params["name"], request.path_params["digest"]
    kind, last = (request.query_params.get(key, "") for key in ("artifactType", "last"))
    if "\0" in kind or (last and not is_digest(last)):
        raise InvalidInput("`artifactType` or `last` cannot be read")
    referrers, more = await manifests.list_referrers(
        deps_of(request), scope, name, digest, kind=kind, last=last
    )
    headers = {"OCI-Filters-Applied": "artifactType"} if kind else {}
    if more:
        query = urlencode({"artifactType": kind, "last": referrers[-1].digest})
        headers["Link"] = f'</v2/{name}/referrers/{digest}?{query}>; rel="next"'
    document = {
        "schemaVersion": 2,
        "mediaType": OCI_INDEX,
        "manifests": [_describe(referrer) for referrer in referrers],
    }
    return _write(document, OCI_INDEX, headers)


def _describe(referrer: Referrer) -> JsonObject:
    """Return the descriptor of a manifest, as an index lists it."""
    described: dict[str, Json] = {
        "mediaType": referrer.media_type,
        "digest": referrer.digest,
        "size": referrer.size,
    }
    if referrer.artifact_type:
        described["artifactType"] = referrer.artifact_type
    if referrer.annotations:
        described["annotations"] = dict(referrer.annotations)
    return described


def _read_count(request: Request) -> int:
    text = request.query_params.get("n")
    if text is None:
        return MOST_TAGS
    if not text.isascii() or not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise InvalidInput("`n` must be a number")
    return int(text)


def _write(document: object, kind: str, headers: dict[str, str]) -> Response:
    # Set as a header, because Starlette would add a charset to `media_type`.
    content = json.dumps(document, ensure_ascii=False)
    return Response(content, headers={**headers, "Content-Type": kind})
