"""Outputs of a release, for templates of other components. No manifest: it has secrets."""

from collections.abc import Sequence
from typing import Final

from exclave.base.json_values import Json, JsonObject, object_or_empty
from exclave.runner.helm.context import HelmContext
from exclave.runner.helm.plan_meta import ReleasePlan
from exclave.runner.jobs.step_outcome import mask_outputs
from exclave.runner.kube.changes.model import WantedObject
from exclave.runner.kube.changes.parallel import run_all
from exclave.runner.kube.changes.state import KubeState
from exclave.wire.jobs import JsonValue

_SHOWN: Final = {"Service": "services", "Ingress": "ingresses", "Deployment": "deployments"}
_METADATA: Final = ("name", "namespace", "labels", "annotations")
_MOST: Final = 100


async def collect_outputs(
    job: HelmContext, plan: ReleasePlan, objects: Sequence[WantedObject], state: KubeState
) -> dict[str, JsonValue]:
    """Return the outputs of a deployed release, masked."""
    outputs: dict[str, JsonValue] = {
        "release": {
            "name": plan.release,
            "namespace": job.spec.namespace,
            "revision": state.revision,
            "chart": plan.chart_name,
            "version": plan.chart_version,
            "app_version": plan.app_version,
        },
        "resources": [list(entry.key) for entry in state.objects],
        **{name: {} for name in _SHOWN.values()},
    }
    for kind, name in _SHOWN.items():
        shown = [wanted.id for wanted in objects if wanted.id.kind == kind][:_MOST]
        by_namespace: dict[str, dict[str, JsonValue]] = {}
        for live in await run_all(shown, job.client.get):
            if live is not None:
                metadata = object_or_empty(live.get("metadata"))
                place = by_namespace.setdefault(str(metadata.get("namespace")), {})
                place[str(metadata.get("name"))] = _describe(live)
        outputs[name] = {namespace: dict(entries) for namespace, entries in by_namespace.items()}
    return mask_outputs(job.context.mask, outputs)


def _describe(live: JsonObject) -> dict[str, JsonValue]:
    metadata = object_or_empty(live.get("metadata"))
    kept: dict[str, Json] = {key: metadata.get(key) for key in _METADATA}
    document: dict[str, Json] = {"metadata": kept, "status": live.get("status")}
    return copy_json(document)


def copy_json(value: JsonObject) -> dict[str, JsonValue]:
    """Return a document made of dictionaries and lists only."""
    return {key: _copy(part) for key, part in value.items()}


def _copy(value: Json) -> JsonValue:
    match value:
        case str() | bool() | int() | float() | None:
            return value
        case dict():
            return copy_json(value)
        case _:
            return [_copy(part) for part in value] if isinstance(value, Sequence) else None
