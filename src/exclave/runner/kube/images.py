"""Images in Kubernetes objects: pinned to digests, and those that come from outside."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from exclave.base.image_names import expand_image
from exclave.base.json_values import Json, JsonObject, list_or_empty, object_or_empty, text_or_empty
from exclave.wire.images import PinnedImage

_CONTAINERS: Final = ("initContainers", "containers", "ephemeralContainers")
_POD_PATHS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("", "Pod"): ("spec",),
    ("", "PodTemplate"): ("template", "spec"),
    ("", "ReplicationController"): ("spec", "template", "spec"),
    ("apps", "Deployment"): ("spec", "template", "spec"),
    ("apps", "StatefulSet"): ("spec", "template", "spec"),
    ("apps", "DaemonSet"): ("spec", "template", "spec"),
    ("apps", "ReplicaSet"): ("spec", "template", "spec"),
    ("batch", "Job"): ("spec", "template", "spec"),
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template", "spec"),
}
"""Where objects have the specification of a pod, by group and kind."""


_Pin = Callable[[str, str], str]
_Change = Callable[[JsonObject], JsonObject]


@dataclass(frozen=True, slots=True)
class PinnedObjects:
    """Objects whose images of synced components name a digest, and the images of others."""

    objects: tuple[JsonObject, ...]
    outside: tuple[str, ...]
    """Images that no component of the install has copied, as they are written, sorted."""
    pull_namespaces: tuple[str, ...]
    """Namespaces whose pods pull images that need the login of the Stack, sorted."""

    def list_notes(self) -> list[str]:
        """Return what a plan says about images from outside."""
        return [
            f"comes from outside: {image}{'' if '@' in image else ' (not pinned)'}"
            for image in self.outside
        ]


def pin_images(
    objects: Iterable[JsonObject], images: Sequence[PinnedImage], *, namespace: str = ""
) -> PinnedObjects:
    """Write the digest into every image of a synced component, in all objects that have pods.

    `repository:tag` becomes `repository:tag@digest`, so that nodes run what was approved, whatever
    happens to the tag. Texts in other kinds of objects stay as they are. `namespace` is that of
    objects that name none.
    """
    by_name = {f"{expand_image(image.repository)}:{image.tag}": image for image in images}
    outside: set[str] = set()
    namespaces: set[str] = set()

    def pin(name: str, where: str) -> str:
        image = by_name.get(_expand(name.partition("@")[0]))
        if image is None or name.partition("@")[2] not in {"", image.digest}:
            outside.add(_expand(name))
            return name
        if image.pull_secret:
            namespaces.add(where)
        return f"{name.partition('@')[0]}@{image.digest}"

    pinned = tuple(_pin_object(document, pin, namespace) for document in objects)
    return PinnedObjects(pinned, tuple(sorted(outside)), tuple(sorted(namespaces)))


def _pin_object(document: JsonObject, pin: _Pin, namespace: str) -> JsonObject:
    group = text_or_empty(document.get("apiVersion")).rpartition("/")[0]
    path = _POD_PATHS.get((group, text_or_empty(document.get("kind"))))
    if path is None:
        return document
    own = text_or_empty(object_or_empty(document.get("metadata")).get("namespace"))
    return _change(document, path, lambda pod: _pin_pod(pod, pin, own or namespace))


def _change(document: JsonObject, path: tuple[str, ...], change: _Change) -> JsonObject:
    """Return a document with the table at a path changed; one that has no such table stays."""
    if not path:
        return change(document)
    inner = document.get(path[0])
    if not isinstance(inner, dict):
        return document
    return {**document, path[0]: _change(inner, path[1:], change)}


def _pin_pod(pod: JsonObject, pin: _Pin, namespace: str) -> JsonObject:
    changed: dict[str, Json] = dict(pod)
    for key in _CONTAINERS:
        if key in pod:
            changed[key] = [
                _pin_container(container, pin, namespace) for container in list_or_empty(pod[key])
            ]
    return changed


def _pin_container(container: Json, pin: _Pin, namespace: str) -> Json:
    facts = object_or_empty(container)
    image = text_or_empty(facts.get("image"))
    return {**facts, "image": pin(image, namespace)} if image else container


def _expand(name: str) -> str:
    """Return an image with the host of its registry, and the tag that nodes would take."""
    plain, at, digest = name.partition("@")
    head, slash, last = plain.rpartition("/")
    last, _, tag = last.partition(":")
    suffix = f":{tag}" if tag else "" if at else ":latest"
    return f"{expand_image(f'{head}{slash}{last}')}{suffix}{at}{digest}"
