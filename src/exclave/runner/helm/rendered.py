"""A release as Helm rendered it: its objects, its hooks, its notes."""

from collections.abc import Sequence
from dataclasses import dataclass

from exclave.base.json_values import (
    JsonObject,
    list_or_empty,
    object_or_empty,
    parse_object,
    text_or_empty,
)
from exclave.runner.kube.api.objects import SourceObject, read_objects

HOOK_ANNOTATION = "helm.sh/hook"


@dataclass(frozen=True, slots=True)
class Hook:
    """An object that Helm makes at certain moments, and that is not part of the release."""

    source: SourceObject
    events: Sequence[str]
    """Such as `pre-upgrade`."""


@dataclass(frozen=True, slots=True)
class RenderedRelease:
    """A chart with values, rendered once."""

    metadata: JsonObject
    """The chart's `Chart.yaml`."""
    objects: Sequence[SourceObject]
    hooks: Sequence[Hook]
    notes: str = ""


def read_release(document: JsonObject) -> RenderedRelease:
    """Return a release from the JSON that Helm prints and keeps in its records."""
    chart = object_or_empty(document.get("chart"))
    return RenderedRelease(
        metadata=object_or_empty(chart.get("metadata")),
        objects=read_objects(text_or_empty(document.get("manifest"))),
        hooks=[_read_hook(object_or_empty(hook)) for hook in list_or_empty(document.get("hooks"))],
        notes=text_or_empty(object_or_empty(document.get("info")).get("notes")),
    )


def read_printed_release(text: str) -> RenderedRelease:
    """Return a release from what `helm upgrade -o json` printed; `ValueError` if it is not one."""
    return read_release(parse_object(text, "the answer of helm"))


def read_template(text: str, metadata: JsonObject) -> RenderedRelease:
    """Return a release from what `helm template` printed: hooks are among the objects there."""
    objects: list[SourceObject] = []
    hooks: list[Hook] = []
    for source in read_objects(text):
        events = _read_events(source.value)
        if events:
            hooks.append(Hook(source, events))
        else:
            objects.append(source)
    return RenderedRelease(metadata, objects, hooks)


def _read_hook(hook: JsonObject) -> Hook:
    source = read_objects(text_or_empty(hook.get("manifest")))[0]
    return Hook(source, [text_or_empty(event) for event in list_or_empty(hook.get("events"))])


def _read_events(value: JsonObject) -> list[str]:
    metadata = object_or_empty(value.get("metadata"))
    text = text_or_empty(object_or_empty(metadata.get("annotations")).get(HOOK_ANNOTATION))
    return [event.strip() for event in text.split(",") if event.strip()]
