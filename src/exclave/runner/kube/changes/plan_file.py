"""The plan of objects as bytes: all that an apply needs; the same plan gives the same bytes."""

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from exclave.base.json_values import (
    Json,
    JsonObject,
    list_or_empty,
    object_or_empty,
    parse_object,
    require_list,
    require_object,
    require_text,
    text_or_empty,
)
from exclave.runner.kube.api.objects import ObjectId, identify
from exclave.runner.kube.changes.model import WantedObject
from exclave.runner.kube.changes.state import PlanMark, read_mark, write_mark

FORMAT: Final = "exclave-kube-plan/1"
_META: Final = "meta.json"
_OBJECTS: Final = "objects.json"
_MOST_BYTES: Final = 256 << 20


class PlannedChange(NamedTuple):
    """What the apply does to one object, and how the object has to look for that."""

    id: ObjectId
    action: str
    fingerprint: str = ""
    """Of the live object; empty if there must be none."""
    uid: str = ""
    force: bool = False
    """Whether fields of other managers are taken over, as the plan shows."""


@dataclass(frozen=True, slots=True)
class PlanFile:
    """What was planned for a part."""

    operation: str
    """`apply` or `teardown`."""
    namespace: str
    cluster: str
    serial: int
    lineage: str
    source: str
    """The digest of the artifact or of the text."""
    changes: Sequence[PlannedChange] = ()
    objects: Sequence[WantedObject] = ()
    """All objects that are wanted, with their values; empty for a teardown."""
    namespaces: Sequence[str] = ()
    """Namespaces that the apply makes, or that the teardown removes if they are empty."""
    fall_back: PlanMark | None = None
    """The plan that a failed rollout goes back to."""
    extra: Mapping[str, bytes] | None = None
    """Further files, such as the frozen chart of a release."""


def pack_files(files: Mapping[str, bytes]) -> bytes:
    """Return files as a tar that depends on nothing but them."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size = len(files[name])
            entry.mode = 0o644
            archive.addfile(entry, io.BytesIO(files[name]))
    return target.getvalue()


def unpack_files(data: bytes) -> dict[str, bytes]:
    """Return the files of a tar archive; `ValueError` if it is not one."""
    files: dict[str, bytes] = {}
    left = _MOST_BYTES
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for entry in archive:
                left -= entry.size
                stream = archive.extractfile(entry) if entry.isreg() and left >= 0 else None
                if stream is None:
                    message = f"the plan has an entry `{entry.name}` that is not a file"
                    raise ValueError(message)
                files[entry.name] = stream.read()
    except tarfile.TarError as error:
        message = "the plan is damaged"
        raise ValueError(message) from error
    return files


def list_touched(plan: PlanFile) -> list[ObjectId]:
    """Return all objects that a plan is about: what it wants, and what it removes or leaves."""
    others = [change.id for change in plan.changes if change.action in {"delete", "keep"}]
    return [*(wanted.id for wanted in plan.objects), *others]


def write_plan(plan: PlanFile) -> bytes:
    """Return the bytes of a plan; their digest is what is approved."""
    meta: dict[str, Json] = {
        "format": FORMAT,
        "operation": plan.operation,
        "namespace": plan.namespace,
        "cluster": plan.cluster,
        "serial": plan.serial,
        "lineage": plan.lineage,
        "source": plan.source,
        "namespaces": list(plan.namespaces),
        "changes": [_write_change(change) for change in plan.changes],
    }
    if plan.fall_back is not None:
        meta["fall_back"] = write_mark(plan.fall_back)
    objects: list[Json] = [wanted.value for wanted in plan.objects]
    files = {_META: _dump(meta), _OBJECTS: _dump(objects)}
    return pack_files({**(plan.extra or {}), **files})


def read_plan_file(data: bytes) -> PlanFile:
    """Return the plan in bytes that `write_plan` wrote; `ValueError` if they are something else."""
    files = unpack_files(data)
    meta = parse_object(files.pop(_META, b""), "the description of the plan")
    if meta.get("format") != FORMAT:
        message = "the plan has a format that this runner does not know: plan again"
        raise ValueError(message)
    serial = meta.get("serial")
    return PlanFile(
        operation=require_text(meta.get("operation"), "`operation` of the plan"),
        namespace=require_text(meta.get("namespace"), "`namespace` of the plan"),
        cluster=require_text(meta.get("cluster"), "`cluster` of the plan"),
        serial=serial if isinstance(serial, int) else 0,
        lineage=text_or_empty(meta.get("lineage")),
        source=text_or_empty(meta.get("source")),
        namespaces=tuple(text_or_empty(entry) for entry in list_or_empty(meta.get("namespaces"))),
        changes=tuple(
            _read_change(object_or_empty(entry)) for entry in list_or_empty(meta.get("changes"))
        ),
        objects=tuple(_read_objects(files.pop(_OBJECTS, b"[]"))),
        fall_back=read_mark(meta.get("fall_back")),
        extra=files or None,
    )


def _read_objects(data: bytes) -> list[WantedObject]:
    values = require_list(json.loads(data), "the objects of the plan")
    objects = [require_object(value, "an object of the plan") for value in values]
    return [WantedObject(identify(value), value) for value in objects]


def _write_change(change: PlannedChange) -> JsonObject:
    return {
        "id": list(change.id),
        "action": change.action,
        "fingerprint": change.fingerprint,
        "uid": change.uid,
        "force": change.force,
    }


def _read_change(value: JsonObject) -> PlannedChange:
    parts = [text_or_empty(part) for part in list_or_empty(value.get("id"))]
    return PlannedChange(
        ObjectId(*parts),
        require_text(value.get("action"), "`action` of a change"),
        text_or_empty(value.get("fingerprint")),
        text_or_empty(value.get("uid")),
        force=value.get("force") is True,
    )


def _dump(value: Json) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode()
