"""The contents of an image: what the package managers in it have installed."""

import json
from collections.abc import Iterator
from pathlib import Path

from exclave.base.json_values import JsonObject, list_or_empty, object_or_empty, text_or_empty
from exclave.client.oci.documents import INDEX
from exclave.runner.builds.recipe import BuildWork
from exclave.runner.builds.sbom.attach import Contents
from exclave.runner.builds.sbom.databases import list_packages
from exclave.runner.builds.sbom.image_files import ImageFiles
from exclave.runner.builds.sbom.packages import Package


def read_image_contents(work: BuildWork, layout: Path) -> Contents:
    """Return the packages of an image in a layout, of all platforms; blobs were verified before."""
    packages: set[Package] = set()
    notes: list[str] = []
    with work.context.workspace.touch():
        for layers in _list_manifests(layout, "index.json"):
            image = ImageFiles()
            image.read_layers(layers, lambda: work.context.check("the bill of materials"))
            packages.update(list_packages(image.files))
            notes += image.notes
    return Contents(sorted(packages), list(dict.fromkeys(notes)))


def _list_manifests(layout: Path, name: str) -> Iterator[list[Path]]:
    """Yield the layers of each image of an index."""
    for child in list_or_empty(_read(layout / name).get("manifests")):
        descriptor = object_or_empty(child)
        path = _name_blob(descriptor)
        if descriptor.get("mediaType") == INDEX:
            yield from _list_manifests(layout, path)
        else:
            layers = list_or_empty(_read(layout / path).get("layers"))
            yield [layout / _name_blob(object_or_empty(layer)) for layer in layers]


def _name_blob(descriptor: JsonObject) -> str:
    return f"blobs/{text_or_empty(descriptor.get('digest')).replace(':', '/')}"


def _read(file: Path) -> JsonObject:
    return object_or_empty(json.loads(file.read_bytes()))
