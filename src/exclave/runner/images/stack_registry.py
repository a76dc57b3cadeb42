"""The registry that a customer names for images: an address, with a login in the secrets."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from exclave.base.errors import InvalidInput
from exclave.base.json_values import parse_object, text_or_empty
from exclave.client.oci.auth import Login
from exclave.runner.data_folder import write_durably
from exclave.runner.images.references import ImageName, parse_image
from exclave.runner.kube.pull_secrets import PullLogin
from exclave.runner.outcomes import WorkFailed
from exclave.runner.secrets.store import SecretStore
from exclave.wire.jobs import Reason

FILE: Final = "image-registry.json"
"""The document in a runner's data folder."""
USERNAME: Final = "registry_username"
PASSWORD: Final = "registry_password"  # noqa: S105 - the name of a secret
LOGIN: Final = (USERNAME, PASSWORD)
"""Secrets that a customer may set in any Stack, beside those that the app declares."""
_HINT: Final = "Write it like https://registry.example.com/folder."


@dataclass(frozen=True, slots=True)
class StackRegistry:
    """A registry, and the folder in it that images are copied into."""

    url: str
    """Scheme and host."""
    folder: str = ""

    def name_image(self, component: str) -> ImageName:
        """Return the repository of a component's image."""
        path = f"{self.folder}/{component}" if self.folder else component
        return ImageName(urlsplit(self.url).netloc, path)


def parse_registry(text: str) -> StackRegistry:
    """Return the registry of an option `URL[/folder]`; without a scheme, it is behind TLS."""
    parts = urlsplit(text if "://" in text else f"https://{text}")
    has_more = parts.query or parts.fragment or "@" in parts.netloc
    if parts.scheme not in {"http", "https"} or not parts.hostname or has_more:
        raise InvalidInput(f"--registry {text}: this is not the address of a registry", hint=_HINT)
    registry = StackRegistry(f"{parts.scheme}://{parts.netloc}", parts.path.strip("/"))
    try:
        parse_image(registry.name_image("x").repository)
    except WorkFailed as failed:
        raise InvalidInput(f"--registry {text}: {failed.message}", hint=_HINT) from failed
    return registry


def keep_registry(data: Path, text: str) -> None:
    """Store the address of the registry; an empty text changes nothing."""
    if not text:
        return
    registry = parse_registry(text)
    document = {"url": f"{registry.url}/{registry.folder}".rstrip("/")}
    write_durably(data / FILE, json.dumps(document).encode())


def read_registry(data: Path) -> StackRegistry | None:
    """Return the registry that the customer named, or None."""
    try:
        document = parse_object((data / FILE).read_bytes(), f"`{data / FILE}`")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        message = f"`{data / FILE}` cannot be read: {error}"
        raise WorkFailed(Reason.RUNNER_ERROR, message) from error
    return parse_registry(text_or_empty(document.get("url")))


async def read_pull_login(data: Path, secrets: SecretStore) -> PullLogin | None:
    """Return how nodes log in to the Stack's registry; None if it needs no login."""
    registry, login = read_registry(data), await read_registry_login(secrets)
    if registry is None or login is None:
        return None
    return PullLogin(urlsplit(registry.url).netloc, login.username, login.password)


async def read_registry_login(secrets: SecretStore) -> Login | None:
    """Return the login of the Stack's registry, if its secrets have one."""
    names = {USERNAME, PASSWORD}
    held = names & await secrets.list_names()
    if not held:
        return None
    values = await secrets.fetch(names)
    return Login(values[USERNAME].reveal(), values[PASSWORD])
