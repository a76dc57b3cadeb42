"""The values of a release: files merged in order, then single values, then those of the install."""

import json
from collections.abc import Mapping

from exclave.base.json_values import Json, JsonObject
from exclave.runner.helm.set_language import SetRefused, set_values
from exclave.runner.kube.api.yaml_reader import YamlRefused, read_document
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason
from exclave.wire.kubernetes import HelmSpec


def merge_values(spec: HelmSpec) -> dict[str, Json]:
    """Return the values of a release, with its placeholders: the last file wins, then `sets`.

    Merged here and not by Helm, because `a[1]=x` changes a list of the files before it.
    Placeholders are filled in afterwards: so a secret can never change the structure.
    """
    values: dict[str, Json] = {}
    for number, text in enumerate(spec.values, start=1):
        values = _merge(values, _read_file(text, f"the values file {number}"))
    try:
        for name, value in spec.sets.items():
            set_values(values, f"{name}={value}")
    except SetRefused as refused:
        raise WorkFailed(Reason.SYNTAX, str(refused)) from refused
    return _merge(values, _read_file(spec.overrides, "the `helm_values` of the install"))


def write_values(values: JsonObject) -> bytes:
    """Return a document of values as a file for Helm: JSON is YAML without surprises."""
    return json.dumps(values, ensure_ascii=False, sort_keys=True).encode()


def _read_file(text: str, what: str) -> dict[str, Json]:
    try:
        value = read_document(text)
    except YamlRefused as problem:
        message = f"{what} cannot be read: {problem.message}"
        raise WorkFailed(Reason.SYNTAX, message) from problem
    if value is None:
        return {}
    if not isinstance(value, dict):
        message = f"{what} has to be a mapping of keys to values"
        raise WorkFailed(Reason.SYNTAX, message)
    return value


def _merge(base: Mapping[str, Json], over: Mapping[str, Json]) -> dict[str, Json]:
    """Return two documents as one, as Helm merges files: mappings by key, everything else whole."""
    merged = dict(base)
    for key, value in over.items():
        existing = merged.get(key)
        if isinstance(existing, Mapping) and isinstance(value, Mapping):
            merged[key] = _merge(existing, value)
        else:
            merged[key] = value
    return merged
