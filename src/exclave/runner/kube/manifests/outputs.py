"""Outputs of a component that is objects: what it has, and where its Services are reached."""

from collections.abc import Sequence
from typing import Final

from exclave.base.json_values import Json, JsonObject, object_or_empty
from exclave.runner.kube.changes.model import WantedObject
from exclave.runner.kube.changes.parallel import run_all
from exclave.runner.kube.manifests.context import ManifestContext
from exclave.runner.plans.shown_values import mask_value
from exclave.wire.jobs import JsonValue

_SHOWN: Final = {("", "Service"): "services", ("networking.k8s.io", "Ingress"): "ingresses"}
_METADATA: Final = ("name", "namespace", "labels", "annotations")
_MOST: Final = 100


async def gather_outputs(
    job: ManifestContext, wanted: Sequence[WantedObject]
) -> dict[str, JsonValue]:
    """Return the outputs: no values of objects but those of Services and Ingresses."""
    outputs: dict[str, JsonValue] = {
        "resources": [
            [entry.id.group, entry.id.kind, entry.id.namespace, entry.id.name] for entry in wanted
        ]
    }
    for key, name in _SHOWN.items():
        chosen = [entry for entry in wanted if (entry.id.group, entry.id.kind) == key][:_MOST]
        values = await run_all(chosen, lambda entry: job.client.get(entry.id))
        outputs[name] = mask_value(_nest(chosen, values), job.context.mask)
    return outputs


def _nest(chosen: Sequence[WantedObject], values: Sequence[JsonObject | None]) -> JsonObject:
    """Return objects by namespace and name."""
    nested: dict[str, dict[str, Json]] = {}
    for entry, value in zip(chosen, values, strict=True):
        if value is not None:
            nested.setdefault(entry.id.namespace, {})[entry.id.name] = _show(value)
    return nested


def _show(value: JsonObject) -> JsonObject:
    metadata = object_or_empty(value.get("metadata"))
    shown: JsonObject = {key: metadata[key] for key in _METADATA if key in metadata}
    return {"metadata": shown, "status": object_or_empty(value.get("status"))}
