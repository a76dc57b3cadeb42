"""The login of the install's registry as Secrets, with which nodes pull the images of a part.

Each part has its own Secret in each namespace whose pods name it, so that nothing is shared and a
teardown can remove it. The login is that of the Stack: it goes from the runner to the cluster.
"""

import base64
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, NamedTuple

from exclave.base.json_values import JsonObject, list_or_empty, object_or_empty
from exclave.base.secrets import Secret
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.errors import ApiRefused
from exclave.runner.kube.api.lists import Selection
from exclave.runner.kube.api.objects import ObjectId, identify
from exclave.runner.kube.changes.model import WantedObject
from exclave.runner.kube.changes.namespaces import name_namespace
from exclave.runner.kube.changes.ownership import (
    PART_ANNOTATION,
    PartOwner,
    read_annotation,
    read_uid,
)
from exclave.runner.kube.images import find_pod
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

MANAGER: Final = "exclave-pull"
_LABEL: Final = "exclave.dev/pull-secret"
"""Its value is the install, so that all of them can be renewed at once."""
_TYPE: Final = "kubernetes.io/dockerconfigjson"
_KEY: Final = ".dockerconfigjson"
_PART_CHARS: Final = 40
_HASH_CHARS: Final = 10


class PullLogin(NamedTuple):
    """How nodes log in to the registry of the install."""

    host: str
    username: str
    password: Secret

    def write(self) -> Secret:
        """Return the document that nodes read, in base64 as the API takes it."""
        pair = f"{self.username}:{self.password.reveal()}"
        entry = {
            "username": self.username,
            "password": self.password.reveal(),
            "auth": base64.b64encode(pair.encode()).decode(),
        }
        document = json.dumps({"auths": {self.host: entry}})
        return Secret(base64.b64encode(document.encode()).decode())

    def list_secrets(self) -> list[Secret]:
        """Return the texts that no log may contain."""
        pair = f"{self.username}:{self.password.reveal()}"
        auth = Secret(base64.b64encode(pair.encode()).decode())
        return [self.password, auth, self.write()]


ReadPullLogin = Callable[[], Awaitable[PullLogin | None]]
"""Returns the login of the Stack's registry; None if it has none."""


async def read_no_login() -> PullLogin | None:
    """Return no login: that of a runner whose Stack has no registry."""
    return None


def name_pull_secret(install: str, part: str) -> str:
    """Return the name of a part's Secret; other installs in the same namespace have others."""
    digest = hashlib.sha256(f"{install}/{part}".encode()).hexdigest()[:_HASH_CHARS]
    return f"exclave-pull-{part.replace('_', '-')[:_PART_CHARS].strip('-')}-{digest}"


def list_pull_namespaces(objects: Iterable[WantedObject], name: str) -> list[str]:
    """Return the namespaces of objects whose pods name a Secret to pull images with, sorted."""
    pulling = [wanted for wanted in objects if names_pull_secret(wanted.value, name)]
    return sorted({wanted.id.namespace for wanted in pulling})


def names_pull_secret(value: JsonObject, name: str) -> bool:
    """Return whether the pods of an object name a Secret to pull images with."""
    named = list_or_empty((find_pod(value) or {}).get("imagePullSecrets"))
    return any(object_or_empty(entry).get("name") == name for entry in named)


@dataclass(frozen=True, slots=True)
class PullSecrets:
    """The Secrets of one part."""

    client: ClusterClient
    install: str
    part: str
    read_login: ReadPullLogin
    hide: Callable[[Iterable[Secret]], None]
    log: Callable[[str], None]

    @property
    def name(self) -> str:
        """The name that they have in every namespace."""
        return name_pull_secret(self.install, self.part)

    async def write_all(self, namespaces: Sequence[str]) -> list[str]:
        """Write the Secret into namespaces; return those that do not exist yet."""
        if not namespaces:
            return []
        login = await self.read_login()
        if login is None:
            message = (
                "pods pull images with the login of the Stack's registry, and it has none: set"
                " the Stack's secrets `registry_username` and `registry_password`"
            )
            raise WorkFailed(Reason.SECRET_MISSING, message)
        self.hide(login.list_secrets())
        missing: list[str] = []
        for namespace in namespaces:
            if await self.client.get(name_namespace(namespace)) is None:
                missing.append(namespace)
            else:
                await self._write(namespace, login)
        return missing

    async def remove_all(self, namespaces: Iterable[str]) -> None:
        """Remove the Secret from namespaces, where it is ours."""
        for namespace in namespaces:
            live = await self.client.get(self._identify(namespace))
            if live is not None and self._owner.owns(live):
                await self.client.delete(self._identify(namespace), uid=read_uid(live))
                self.log(f"Secret {namespace}/{self.name}: removed")

    async def _write(self, namespace: str, login: PullLogin) -> None:
        live = await self.client.get(self._identify(namespace))
        if live is not None and not self._owner.owns(live):
            message = f"Secret {namespace}/{self.name} belongs to somebody else: remove it"
            raise WorkFailed(Reason.OBJECT_REFUSED, message)
        value = _write_secret(namespace, self.name, self.install, login)
        await self.client.apply(self._owner.mark(value), manager=MANAGER, force=True)
        self.log(f"Secret {namespace}/{self.name}: written, with which nodes pull images")

    @property
    def _owner(self) -> PartOwner:
        return PartOwner(self.install, f"{self.part}/pull", MANAGER)

    def _identify(self, namespace: str) -> ObjectId:
        return ObjectId("", "v1", "Secret", namespace, self.name)


async def renew_pull_secrets(
    client: ClusterClient, install: str, login: PullLogin, log: Callable[[str], None]
) -> None:
    """Write the current login into all Secrets of an install that have an older one."""
    discovery = await client.discover()
    resource = discovery.require(ObjectId("", "v1", "Secret", "", ""))
    try:
        listed = await client.list_objects(resource, Selection(labels=f"{_LABEL}={install}"))
    except ApiRefused as refused:
        if refused.status.code != HTTPStatus.FORBIDDEN:
            raise
        log("the login of the registry is renewed by the next deploy of each component")
        return
    for live in listed.items:
        part = read_annotation(live, PART_ANNOTATION)
        is_old = object_or_empty(live.get("data")).get(_KEY) != login.write().reveal()
        if part.startswith(f"{install}/") and is_old:
            owner = PartOwner(install, part.removeprefix(f"{install}/"), MANAGER)
            await client.apply(_renew(live, owner, login), manager=MANAGER, force=True)
            log(f"Secret {identify(live).namespace}/{identify(live).name}: renewed")


def _write_secret(namespace: str, name: str, install: str, login: PullLogin) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": namespace, "labels": {_LABEL: install}}
    data = {_KEY: login.write().reveal()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": _TYPE, "data": data}


def _renew(live: JsonObject, owner: PartOwner, login: PullLogin) -> JsonObject:
    """Return a Secret with the current login; the uid keeps it from making a new one."""
    object_id = identify(live)
    value = owner.mark(_write_secret(object_id.namespace, object_id.name, owner.install, login))
    metadata = {**object_or_empty(value.get("metadata")), "uid": read_uid(live)}
    return {**value, "metadata": metadata}
