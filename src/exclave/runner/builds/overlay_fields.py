"""Fields of kustomize by what their values name: nothing, files, folders, or texts in place."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from exclave.base.json_values import Json, JsonObject, list_or_empty, object_or_empty

SAFE_FIELDS: Final = frozenset(
    {
        "apiVersion",
        "buildMetadata",
        "commonAnnotations",
        "commonLabels",
        "generatorOptions",
        "images",
        "kind",
        "labels",
        "metadata",
        "namePrefix",
        "nameSuffix",
        "namespace",
        "replicas",
        "sortOptions",
        "vars",
    }
)
"""Fields that name no file."""
FOLDER_FIELDS: Final = frozenset({"bases", "components", "resources"})
INLINE_FIELDS: Final = frozenset(
    {"generators", "patchesStrategicMerge", "transformers", "validators"}
)
"""Fields whose texts are paths, or YAML."""
_PLAIN_PLUGINS: Final = frozenset(
    {
        "AnnotationsTransformer",
        "HashTransformer",
        "IAMPolicyGenerator",
        "ImageTagTransformer",
        "LabelTransformer",
        "LegacyOrderTransformer",
        "NamespaceTransformer",
        "PrefixSuffixTransformer",
        "PrefixTransformer",
        "ReplicaCountTransformer",
        "SortOrderTransformer",
        "SuffixTransformer",
        "ValueAddTransformer",
    }
)
"""Plugins of kustomize that name no file."""


def list_paths(key: str, value: Json) -> list[str] | None:
    """Return the paths in a field of a kustomization; None for a field that is not known."""
    reader = _FIELDS.get(key)
    return None if reader is None else list(reader(value))


def list_plugin_paths(kind: str, value: JsonObject) -> list[str] | None:
    """Return the paths in the settings of a plugin; None for a plugin that is not known."""
    if kind in _PLAIN_PLUGINS:
        return []
    reader = _PLUGINS.get(kind)
    return None if reader is None else list(reader(value))


def _list_texts(value: Json) -> Iterator[str]:
    yield from map(str, list_or_empty(value))


def _list_named(value: Json) -> Iterator[str]:
    """Yield `path` of an object. Letter case does not count: Go reads `Path` too."""
    for key, text in object_or_empty(value).items():
        if key.lower() == "path" and text:
            yield str(text)


def _list_all_named(value: Json) -> Iterator[str]:
    for entry in list_or_empty(value):
        yield from _list_named(entry)


def _list_generated(value: Json) -> Iterator[str]:
    """Yield the files that become values of a ConfigMap or Secret."""
    for key, part in object_or_empty(value).items():
        match key.lower():
            case "files":
                for text in map(str, list_or_empty(part)):
                    yield text.partition("=")[2] or text
            case "envs":
                yield from map(str, list_or_empty(part))
            case "env" if part:
                yield str(part)
            case _:
                pass


def _list_all_generated(value: Json) -> Iterator[str]:
    for entry in list_or_empty(value):
        yield from _list_generated(entry)


def _list_patches(value: Json) -> Iterator[str]:
    yield from _list_texts(object_or_empty(value).get("paths"))


def _list_replacements(value: Json) -> Iterator[str]:
    yield from _list_all_named(object_or_empty(value).get("replacements"))


_FIELDS: Final[Mapping[str, Callable[[Json], Iterator[str]]]] = {
    "bases": _list_texts,
    "components": _list_texts,
    "configMapGenerator": _list_all_generated,
    "configurations": _list_texts,
    "crds": _list_texts,
    "openapi": _list_named,
    "patches": _list_all_named,
    "patchesJson6902": _list_all_named,
    "replacements": _list_all_named,
    "resources": _list_texts,
    "secretGenerator": _list_all_generated,
}
_PLUGINS: Final[Mapping[str, Callable[[Json], Iterator[str]]]] = {
    "ConfigMapGenerator": _list_generated,
    "PatchJson6902Transformer": _list_named,
    "PatchStrategicMergeTransformer": _list_patches,
    "PatchTransformer": _list_named,
    "ReplacementTransformer": _list_replacements,
    "SecretGenerator": _list_generated,
}
