"""Access to the registries of images: connections, and what a refusal means."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx

from exclave.base.errors import Problem
from exclave.client.oci.auth import NoteToken
from exclave.client.oci.client import Login, OciClient
from exclave.client.oci.documents import CorruptContent
from exclave.client.oci.repository import OciRepository
from exclave.client.problems import RemoteProblem, Unreachable
from exclave.client.reach import Reach
from exclave.client.transport import Link, build_tls, open_transport
from exclave.runner.images.references import ImageName
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

_CONNECTIONS = 10
_REACH = Reach()


@asynccontextmanager
async def open_image_repository(
    link: Link,
    name: ImageName,
    login: Login | None,
    note_token: NoteToken,
    *,
    url: str = "",
    reach: Reach = _REACH,
) -> AsyncIterator[OciRepository]:
    """Open the repository of an image; `url` is the address if it is not that of the name.

    Redirects and token servers, which registries name, have to be within reach too.
    """
    own = replace(link, url=url or name.url)
    transport = open_transport(own, build_tls(own), _CONNECTIONS, reach=reach)
    client = OciClient(own.url, None, transport, login=login, note_token=note_token)
    async with client:
        yield client.open_repository(name.path)


def explain_refusal(problem: Problem, image: str, *, advice: str = "") -> WorkFailed:
    """Return the failure of a job that could not read or store an image."""
    if isinstance(problem, CorruptContent):
        return WorkFailed(Reason.ARTIFACT_TAMPERED, f"{image}: {problem.message}")
    if isinstance(problem, Unreachable):
        return WorkFailed(Reason.NETWORK, f"{image}: {problem.message}. {problem.advice}".strip())
    match problem.status if isinstance(problem, RemoteProblem) else 0:
        case httpx.codes.UNAUTHORIZED | httpx.codes.FORBIDDEN:
            message = f"the registry does not give access to {image}: {problem.message}. {advice}"
            return WorkFailed(Reason.ACCESS_DENIED, message.strip())
        case httpx.codes.NOT_FOUND:
            return WorkFailed(Reason.IMAGE_UNAVAILABLE, f"there is no image {image}")
        case httpx.codes.TOO_MANY_REQUESTS:
            message = (
                f"the registry limits how often {image} may be pulled: log in, with a name and a"
                " password in the build runner's source-credentials.json, or try again later"
            )
            return WorkFailed(Reason.QUOTA, message)
        case _:
            message = f"{image}: {problem.message}. {problem.advice}".strip()
            return WorkFailed(Reason.IMAGE_UNAVAILABLE, message)
