"""Helm's records of a release: one Secret or ConfigMap per revision, decoded and encoded."""

import base64
import binascii
import gzip
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from exclave.base.json_values import Json, JsonObject, object_or_empty, parse_object, text_or_empty
from exclave.runner.kube.api.client import ClusterClient
from exclave.runner.kube.api.discovery import Resource
from exclave.runner.kube.api.lists import Selection
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

Driver = Literal["secret", "configmap"]

EXECUTION_LABEL: Final = "exclave.dev/execution"
QUEUE_LABEL: Final = "exclave.dev/queue"
"""The queue of the install: tells our dead attempts from those of another install."""
PLAN_LABEL: Final = "exclave.dev/plan"
PENDING: Final = frozenset({"pending-install", "pending-upgrade", "pending-rollback"})
_GZIP: Final = b"\x1f\x8b"
_MOST_BYTES: Final = 64 << 20
_RESOURCES: Final[Mapping[Driver, Resource]] = {
    "secret": Resource("", "v1", "Secret", "secrets", namespaced=True),
    "configmap": Resource("", "v1", "ConfigMap", "configmaps", namespaced=True),
}
_KINDS: Final[Mapping[Driver, str]] = {"secret": "Secret", "configmap": "ConfigMap"}


@dataclass(frozen=True, slots=True)
class ReleaseRecord:
    """One revision of a release."""

    revision: int
    status: str
    labels: Mapping[str, str]
    holder: JsonObject = field(repr=False)
    """The Secret or ConfigMap."""
    release: JsonObject = field(repr=False)
    """What Helm knows about the revision: `manifest`, `info`, `chart`, `config`."""

    @property
    def is_pending(self) -> bool:
        """Whether Helm would say that another operation is in progress."""
        return self.status in PENDING


async def list_records(
    client: ClusterClient, driver: Driver, namespace: str, release: str
) -> list[ReleaseRecord]:
    """Return the records of a release, the oldest first."""
    selection = Selection(namespace=namespace, labels=f"owner=helm,name={release}")
    listed = await client.list_objects(_RESOURCES[driver], selection)
    records = [read_record(driver, holder) for holder in listed.items]
    return sorted(records, key=lambda record: record.revision)


async def find_driver(
    client: ClusterClient, wanted: str, namespace: str, release: str
) -> tuple[Driver, list[ReleaseRecord]]:
    """Return where the records of a release are, and the records.

    `auto` is where there are records, and in Secrets if there are none.
    """
    if wanted in _RESOURCES:
        driver: Driver = "configmap" if wanted == "configmap" else "secret"
        return driver, await list_records(client, driver, namespace, release)
    secrets = await list_records(client, "secret", namespace, release)
    if secrets:
        return "secret", secrets
    configmaps = await list_records(client, "configmap", namespace, release)
    return ("configmap" if configmaps else "secret"), configmaps


def read_record(driver: Driver, holder: JsonObject) -> ReleaseRecord:
    """Return the record in a Secret or ConfigMap."""
    metadata = object_or_empty(holder.get("metadata"))
    labels = {
        key: text_or_empty(value) for key, value in object_or_empty(metadata.get("labels")).items()
    }
    data = text_or_empty(object_or_empty(holder.get("data")).get("release"))
    try:
        release = decode_release(driver, data)
        revision = int(labels.get("version", ""))
    except (ValueError, OSError, EOFError) as error:
        name = text_or_empty(metadata.get("name"))
        message = f"the record `{name}` of the release cannot be read: {error}"
        raise WorkFailed(Reason.OBJECT_REFUSED, message) from error
    return ReleaseRecord(revision, labels.get("status", ""), labels, holder, release)


def mark_failed(driver: Driver, record: ReleaseRecord, why: str) -> JsonObject:
    """Return the record as a failed one, to be stored in place of exactly this version of it."""
    info: dict[str, Json] = {
        **object_or_empty(record.release.get("info")),
        "status": "failed",
        "description": why,
    }
    metadata = object_or_empty(record.holder.get("metadata"))
    kept = {key: value for key, value in metadata.items() if key != "managedFields"}
    release: dict[str, Json] = {**record.release, "info": info}
    return {
        **record.holder,
        "apiVersion": "v1",
        "kind": _KINDS[driver],
        "metadata": {**kept, "labels": {**record.labels, "status": "failed"}},
        "data": {"release": encode_release(driver, release)},
    }


def decode_release(driver: Driver, text: str) -> JsonObject:
    """Return the release in the data of a record; `ValueError` if it has none."""
    try:
        data = base64.b64decode(text, validate=True)
        data = base64.b64decode(data, validate=True) if driver == "secret" else data
    except binascii.Error as error:
        message = "it is not in base64"
        raise ValueError(message) from error
    if data.startswith(_GZIP):
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            data = stream.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        message = f"it has more than {_MOST_BYTES} bytes"
        raise ValueError(message)
    return parse_object(data, "the release")


def encode_release(driver: Driver, release: JsonObject) -> str:
    """Return the data of a record."""
    text = json.dumps(release, separators=(",", ":"), ensure_ascii=False)
    data = base64.b64encode(gzip.compress(text.encode(), mtime=0))
    return (base64.b64encode(data) if driver == "secret" else data).decode()


def list_since_deployed(records: Sequence[ReleaseRecord]) -> list[ReleaseRecord]:
    """Return the last deployed revision and all after it: what they made may still be there."""
    deployed = max(
        (record.revision for record in records if record.status == "deployed"), default=0
    )
    return [record for record in records if record.revision >= deployed]
