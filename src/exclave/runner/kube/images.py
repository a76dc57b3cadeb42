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


_Pin = Callable[[str], str]
_Change = Callable[[JsonObject], JsonObject]


@dataclass(frozen=True, slots=True)
class PinnedObjects:
    """Objects whose images of synced components name a digest, and the images of others."""

    objects: tuple[JsonObject, ...]
    outside: tuple[str, ...]
    """Images that no component of the install has copied, as they are written, sorted."""

    def list_outside(self) -> list[str]:
        """Return the images from outside as a plan names them: those without a digest say so."""
        return [f"{image}{'' if '@' in image else ' (not pinned)'}" for image in self.outside]


def pin_images(
    objects: Iterable[JsonObject], images: Sequence[PinnedImage], *, pull_secret: str = ""
) -> PinnedObjects:
    """Write the digest into every image of a synced component, in all objects that have pods.

    `repository:tag` becomes `repository:tag@digest`, so that nodes run what was approved, whatever
    happens to the tag. Pods that pull an image which needs the login of the Stack name the Secret
    `pull_secret`. Texts in other kinds of objects stay as they are.
    """
    by_name = {
        name: image
        for image in images
        for repository in (expand_image(image.repository),)
        for name in (f"{repository}:{image.tag}", f"{repository}@{image.digest}")
    }
    outside: set[str] = set()

    def change(pod: JsonObject) -> JsonObject:
        needs_login = False

        def pin(name: str) -> str:
            nonlocal needs_login
            plain, at, digest = name.partition("@")
            image = by_name.get(_expand(name)) if at else None
            image = image or by_name.get(_expand(plain))
            if image is None or digest not in {"", image.digest}:
                outside.add(_expand(name))
                return name
            needs_login |= image.pull_secret
            return f"{plain}@{image.digest}"

        pinned = _pin_pod(pod, pin)
        return _add_pull_secret(pinned, pull_secret) if needs_login and pull_secret else pinned

    pinned = tuple(_change(document, find_pod_path(document), change) for document in objects)
    return PinnedObjects(pinned, tuple(sorted(outside)))


def find_pod(document: JsonObject) -> JsonObject | None:
    """Return the specification of the pods that an object makes; None if it makes none."""
    pod: Json = document
    path = find_pod_path(document)
    for key in path or ():
        pod = object_or_empty(pod).get(key)
    return pod if path and isinstance(pod, dict) else None


def find_pod_path(document: JsonObject) -> tuple[str, ...] | None:
    """Return where an object has the specification of a pod; None if it has none."""
    group = text_or_empty(document.get("apiVersion")).rpartition("/")[0]
    return _POD_PATHS.get((group, text_or_empty(document.get("kind"))))


def _change(document: JsonObject, path: tuple[str, ...] | None, change: _Change) -> JsonObject:
    """Return a document with the table at a path changed; one that has no such table stays."""
    if path is None:
        return document
    if not path:
        return change(document)
    inner = document.get(path[0])
    if not isinstance(inner, dict):
        return document
    return {**document, path[0]: _change(inner, path[1:], change)}


def _pin_pod(pod: JsonObject, pin: _Pin) -> JsonObject:
    changed: dict[str, Json] = dict(pod)
    for key in _CONTAINERS:
        if key in pod:
            changed[key] = [_pin_container(container, pin) for container in list_or_empty(pod[key])]
    return changed


def _pin_container(container: Json, pin: _Pin) -> Json:
    facts = object_or_empty(container)
    image = text_or_empty(facts.get("image"))
    return {**facts, "image": pin(image)} if image else container


def _add_pull_secret(pod: JsonObject, name: str) -> JsonObject:
    named = list_or_empty(pod.get("imagePullSecrets"))
    if any(object_or_empty(entry).get("name") == name for entry in named):
        return pod
    return {**pod, "imagePullSecrets": [*named, {"name": name}]}


def _expand(name: str) -> str:
    """Return an image with the host of its registry, and the tag that nodes would take."""
    plain, at, digest = name.partition("@")
    head, slash, last = plain.rpartition("/")
    last, _, tag = last.partition(":")
    suffix = f":{tag}" if tag else "" if at else ":latest"
    return f"{expand_image(f'{head}{slash}{last}')}{suffix}{at}{digest}"
