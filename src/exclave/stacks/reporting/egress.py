"""The addresses that an app needs, computed from its config."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from exclave.base.json_values import Json, JsonObject
from exclave.domain.stacks import Cloud
from exclave.stacks.model import StackModel

_REPOSITORY: Final = re.compile(r"[\w.-]+/[\w.-]+(//.*)?")
_IMAGES: Final = "docker.io"
_TERRAFORM: Final = ("registry.terraform.io", "releases.hashicorp.com", "github.com")
_APIS: Final = {
    Cloud.AWS: ("sts", "secretsmanager", "logs"),
    Cloud.GCP: ("iamcredentials", "secretmanager", "logging"),
}
_GCP_HOST: Final = "{}.googleapis.com"


@dataclass(frozen=True, slots=True)
class Destination:
    """A host that something connects to, over TLS on port 443."""

    host: str
    who: str
    """`machine`: the runner in the account; `cluster`: nodes that pull; `vendor`: builds."""
    reason: str


def list_destinations(
    model: StackModel, definitions: Iterable[JsonObject] = ()
) -> tuple[Destination, ...]:
    """Return the hosts that the app of a model needs, sorted.

    `definitions` are the app's sandbox and components as they are stored; without them only what
    every runner needs is known.
    """
    hosts = {*_list_own(model)}
    for definition in definitions:
        hosts |= {*_list_of_part(definition)}
    order = {"machine": 0, "cluster": 1, "vendor": 2}
    return tuple(sorted(hosts, key=lambda item: (order[item.who], item.host, item.reason)))


def _list_own(model: StackModel) -> Iterator[Destination]:
    """Yield what every runner needs."""
    yield Destination(_find_host(model.runner_url), "machine", "the vendor's control plane")
    region = model.account.region
    for service in _APIS.get(model.cloud, ()):
        match model.cloud:
            case Cloud.AWS:
                suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
                yield Destination(f"{service}.{region}.{suffix}", "machine", "the cloud's API")
            case _:
                yield Destination(_GCP_HOST.format(service), "machine", "the cloud's API")
    if model.cloud is Cloud.AZURE:
        yield Destination("management.azure.com", "machine", "the cloud's API")
        yield Destination("*.vault.azure.net", "machine", "the key vaults of the Stack")
        yield Destination("*.ingest.monitor.azure.com", "machine", "the log of the Stack")


def _list_of_part(definition: JsonObject) -> Iterator[Destination]:
    """Yield what the sandbox or a component needs."""
    name = str(definition.get("name") or "the sandbox")
    kind = str(definition.get("type") or "terraform")
    if kind.startswith("terraform"):
        for host in _TERRAFORM:
            yield Destination(host, "machine", "Terraform and its providers")
    for key, value in _walk(definition):
        host = ""
        match key:
            case "repo":
                host, who = _find_repository(value), "vendor"
            case "repo_url":
                host, who = _find_host(value), "vendor"
            case "image_url":
                host, who = _find_registry(value), "cluster" if kind == "job" else "vendor"
        if host:
            yield Destination(host, who, _REASONS[key].format(name))


_REASONS: Final[Mapping[str, str]] = {
    "repo": "source code of {}",
    "repo_url": "charts of {}",
    "image_url": "images of {}",
}


def _walk(value: Json, key: str = "") -> Iterator[tuple[str, str]]:
    match value:
        case str():
            yield key, value
        case dict():
            for name, item in value.items():
                yield from _walk(item, name)
        case list():
            for item in value:
                yield from _walk(item, key)


def _find_host(address: str) -> str:
    """Return the host of an address; empty if only the install knows it."""
    if "{{" in address:
        return ""
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
        return (parts.hostname or "").lower()
    except ValueError:
        return ""


def _find_repository(repository: str) -> str:
    """Return the host of a repository; a short name is one of GitHub, a path is the app's own."""
    address = repository.removeprefix("git::")
    if address.startswith((".", "/")):
        return ""
    if _REPOSITORY.fullmatch(address) and "." not in address.partition("/")[0]:
        return "github.com"
    if "://" not in address and "@" in address:  # git@host:owner/name
        address = address.partition("@")[2].partition(":")[0]
    return _find_host(address)


def _find_registry(image: str) -> str:
    """Return the host of an image; a short name is one of Docker Hub."""
    first, slash, _ = image.removeprefix("oci://").partition("/")
    has_host = bool(slash) and ("." in first or ":" in first)
    return _find_host(first) if has_host else ("" if "{{" in first else _IMAGES)
