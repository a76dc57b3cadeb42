"""The registry of an execution: the embedded one, or an external one that is configured."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path

from exclave.base.errors import InvalidInput
from exclave.base.secrets import Secret
from exclave.client.oci.auth import NoteToken
from exclave.client.oci.client import Login, OciClient
from exclave.client.transport import build_tls, open_transport
from exclave.runner.control_plane.execution_api import Uplink

OpenRegistry = Callable[[Uplink], AbstractAsyncContextManager[OciClient]]

_CONNECTIONS = 8


@asynccontextmanager
async def open_registry(
    uplink: Uplink, login: Login | None = None, note_token: NoteToken | None = None
) -> AsyncIterator[OciClient]:
    """Open the registry that holds artifacts; `login` is for one that is not Exclave's own."""
    registry = await uplink.get_registry()
    url = registry.url or f"{uplink.link.url.rstrip('/')}/{registry.folder}"
    link = replace(uplink.link, url=url)
    client = OciClient(
        url,
        None if registry.url else uplink.get_token,
        open_transport(link, build_tls(link), _CONNECTIONS),
        login=login,
        note_token=note_token,
    )
    async with client:
        yield client


def bind_registry(
    username: str, password_file: Path | None, note_token: NoteToken | None = None
) -> OpenRegistry:
    """Return a function that opens the registry with the runner's credentials, read each time."""

    def open_one(uplink: Uplink) -> AbstractAsyncContextManager[OciClient]:
        return open_registry(uplink, read_login(username, password_file), note_token)

    return open_one


def read_login(username: str, password_file: Path | None) -> Login | None:
    """Return the credentials for an external registry, if there are any."""
    if not username and password_file is None:
        return None
    if not username or password_file is None:
        raise InvalidInput(
            "a registry needs a name and a password",
            hint="Set both EXCLAVE_REGISTRY_USERNAME and EXCLAVE_REGISTRY_PASSWORD_FILE.",
        )
    try:
        password = password_file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise InvalidInput(
            f"cannot read the registry's password from `{password_file}`: {error.strerror}",
            hint="Name a file that this user may read, with mode 0600.",
        ) from error
    return Login(username, Secret(password))
