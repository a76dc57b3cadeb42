"""Changes that drift scans leave out: what controllers write, and what rules of the app name."""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from exclave.base.json_values import Json, JsonObject, object_or_empty, text_or_empty
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.kube.changes.fields import FieldPath
from exclave.wire.kubernetes import IgnoreRule

_STEP = re.compile(r'\.?([A-Za-z0-9_$-]+)|\[\*\]|\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]')
_REPLICAS: Final[FieldPath] = ("spec", "replicas")
_CA_BUNDLE: Final = "caBundle"
_WITH_CA_BUNDLES: Final = frozenset(
    {
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "APIService",
        "CustomResourceDefinition",
    }
)
_SCALERS: Final = frozenset({"HorizontalPodAutoscaler", "ScaledObject"})


class RuleBroken(ValueError):  # noqa: N818 - says what is wrong with the rule
    """An ignore rule has a path that cannot be read."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    kind: str
    name: str
    path: tuple[Json, ...] | None
    """The steps of the path; None among them stands for every entry of a list."""


class IgnoreRules:
    """The rules of one scan."""

    def __init__(
        self,
        rules: Iterable[IgnoreRule],
        scalers: Iterable[JsonObject] = (),
    ) -> None:
        self._patterns = [
            _Pattern(rule.kind, rule.name or "*", parse_rule_path(rule.path)) for rule in rules
        ]
        self._scaled = {target for scaler in scalers for target in _find_targets(scaler)}

    def ignores(self, object_id: ObjectId, path: FieldPath, live: JsonObject | None = None) -> bool:
        """Return whether a change of a field does not count as drift."""
        if path[:1] == ("status",):
            return True
        if object_id.kind in _WITH_CA_BUNDLES and path[-1:] == (_CA_BUNDLE,):
            return True
        if path == _REPLICAS and self._is_scaled(object_id, live):
            return True
        return any(_matches(pattern, object_id, path) for pattern in self._patterns)

    def _is_scaled(self, object_id: ObjectId, live: JsonObject | None) -> bool:
        target = (object_id.namespace, object_id.kind, object_id.name)
        return target in self._scaled or (live is not None and _was_scaled(live))


def is_scaler(object_id: ObjectId) -> bool:
    """Return whether objects of this kind change the number of replicas of others."""
    return object_id.kind in _SCALERS


def parse_rule_path(text: str) -> tuple[Json, ...] | None:
    """Return the steps of a path such as `spec.containers[*].image`; None if it is empty."""
    if not text:
        return None
    steps: list[Json] = []
    at = 0
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            message = f"`{text}` is not a path: write it like `spec.containers[*].image`"
            raise RuleBroken(message)
        steps.append(_read_step(match))
        at = match.end()
    return tuple(steps)


def _read_step(match: re.Match[str]) -> Json:
    name, key, number = match.groups()
    if name is not None:
        return name
    if key is not None:
        return key.replace('\\"', '"').replace("\\\\", "\\")
    return None if number is None else int(number)


def _matches(pattern: _Pattern, object_id: ObjectId, path: FieldPath) -> bool:
    if pattern.kind and pattern.kind != object_id.kind:
        return False
    if not fnmatch.fnmatchcase(object_id.name, pattern.name):
        return False
    return pattern.path is None or _is_below(pattern.path, path)


def _is_below(pattern: Sequence[Json], path: FieldPath) -> bool:
    """Return whether a field is the one that a path names, or inside of it."""
    return len(pattern) <= len(path) and all(
        step is None or step == (key[0] if isinstance(key, tuple) else key)
        for step, key in zip(pattern, path, strict=False)
    )


def _find_targets(scaler: JsonObject) -> Iterator[tuple[str, str, str]]:
    """Yield namespace, kind and name of what an autoscaler scales."""
    metadata = object_or_empty(scaler.get("metadata"))
    target = object_or_empty(object_or_empty(scaler.get("spec")).get("scaleTargetRef"))
    name = text_or_empty(target.get("name"))
    if name:
        kind = text_or_empty(target.get("kind")) or "Deployment"
        yield text_or_empty(metadata.get("namespace")), kind, name


def _was_scaled(live: JsonObject) -> bool:
    """Return whether somebody set the replicas through the subresource `scale`."""
    entries = object_or_empty(live.get("metadata")).get("managedFields")
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        return False
    return any(object_or_empty(entry).get("subresource") == "scale" for entry in entries)
