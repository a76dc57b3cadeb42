"""Layers of images as they are read for a bill of materials: by name, in order, within limits."""

import gzip
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from exclave.runner.builds.sbom.image_files import ImageFiles, ReadLimits

STATUS = "var/lib/dpkg/status"
PACKAGE = "app/node_modules/a/package.json"


def make_layer(file: Path, entries: Mapping[str, bytes], *, packed: bool = True) -> Path:
    """Write a layer with these files."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for name, data in entries.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    file.write_bytes(gzip.compress(plain.getvalue()) if packed else plain.getvalue())
    return file


def read(
    folder: Path, *layers: Mapping[str, bytes], limits: ReadLimits | None = None
) -> ImageFiles:
    """Return what is read of an image with these layers."""
    image = ImageFiles(limits or ReadLimits())
    files = [make_layer(folder / str(at), layer) for at, layer in enumerate(layers)]
    image.read_layers(files, lambda: None)
    return image


def test_a_file_of_a_higher_layer_replaces_that_of_a_lower_one(tmp_path: Path) -> None:
    image = read(tmp_path, {f"./{STATUS}": b"old", "etc/passwd": b"x"}, {f"/{STATUS}": b"new"})

    assert image.files == {STATUS: b"new"}


@pytest.mark.parametrize(
    ("whiteout", "left"),
    [
        ("var/lib/dpkg/.wh.status", {PACKAGE}),
        ("var/lib/.wh.dpkg", {PACKAGE}),
        ("app/.wh..wh..opq", {STATUS}),
        (".wh..wh..opq", set[str]()),
        ("var/lib/dpkg/.wh.stat", {STATUS, PACKAGE}),
    ],
)
def test_what_a_higher_layer_removes_is_gone(tmp_path: Path, whiteout: str, left: set[str]) -> None:
    image = read(tmp_path, {STATUS: b"1", PACKAGE: b"2"}, {whiteout: b""})

    assert set(image.files) == left


def test_a_name_that_leads_outside_is_only_a_name(tmp_path: Path) -> None:
    image = read(tmp_path, {f"../../../../{STATUS}": b"x"})

    assert image.files == {STATUS: b"x"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0"]


@pytest.mark.parametrize(
    "limits", [ReadLimits(entries=1), ReadLimits(file_bytes=3), ReadLimits(kept_bytes=7)]
)
def test_a_layer_with_too_much_in_it_is_noted(tmp_path: Path, limits: ReadLimits) -> None:
    image = read(tmp_path, {STATUS: b"12345", PACKAGE: b"67890"}, limits=limits)

    assert image.notes == ["layer 1 has more than is read"]


def test_a_name_that_would_fill_the_memory_is_not_read(tmp_path: Path) -> None:
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 4 << 30
    (tmp_path / "bomb").write_bytes(gzip.compress(header.tobuf(tarfile.GNU_FORMAT)))
    image = ImageFiles()

    image.read_layers([tmp_path / "bomb"], lambda: None)

    assert image.notes == ["layer 1 has more than is read"]


def test_a_layer_that_is_no_archive_is_noted_and_the_others_are_read(tmp_path: Path) -> None:
    good = make_layer(tmp_path / "good", {STATUS: b"x"}, packed=False)
    (tmp_path / "bad").write_bytes(b"PK\x03\x04 something else")
    image = ImageFiles()

    image.read_layers([tmp_path / "bad", good], lambda: None)

    assert image.files == {STATUS: b"x"}
    assert image.notes == ["layer 1 cannot be read: ReadError"]


def test_a_stop_ends_the_reading(tmp_path: Path) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ImageFiles().read_layers([make_layer(tmp_path / "0", {STATUS: b"x"})], stop)
