"""YAML is read as Helm reads it: thousands of scalars and documents, compared with `fromYaml`."""

import base64
import json
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

from exclave.base.json_values import Json
from exclave.runner.kube.api.yaml_reader import YamlRefused, read_document
from exclave.runner.kube.api.yaml_writer import write_documents
from tests.support.kubernetes_tools import need_helm

PIECES = [
    *["0", "1", "7", "8", "9", "00", "01", "08", "0x", "0X", "0b", "0o", "1e", "e3", "E+2", "e-1", "_", ".", "-", "+", ":", "/", "a", "b", "f", "y", "n", "t", "~", "#", "@"],
    *["yes", "no", "on", "off", "true", "false", "null", "Null", "TRUE", "y", "N", "1_000", "0x1F", "0o17", "12:30", "2026-11-18", "1.5", ".5", "5."],
    *["1e3", "+1", "-1", "0.1e-7", "123456789012345678901234567890", "18446744073709551615", "1e21", "1e20", "-0"],
]  # fmt: skip


def read_with_helm(texts: Sequence[str], folder: Path) -> list[Json]:
    """Return what helm makes of each text; errors of a text are objects with `Error`."""
    chart = folder / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: c\nversion: 0.1.0\n")
    (chart / "texts.json").write_text(json.dumps(texts))
    # The values are printed as texts inside a ConfigMap, so that nothing reads them again.
    (chart / "templates" / "out.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n"
        '{{- range $i, $text := .Files.Get "texts.json" | fromJsonArray }}\n'
        "  {{ $i | quote }}: {{ $text | fromYaml | toJson | b64enc | quote }}\n{{- end }}\n"
    )
    argv = [str(need_helm()), "template", "r", str(chart)]
    done = subprocess.run(argv, capture_output=True, check=True, text=True)
    document = read_document(done.stdout)
    assert isinstance(document, dict)
    data = document["data"]
    assert isinstance(data, dict)
    return [json.loads(base64.b64decode(str(data[str(i)]))) for i in range(len(texts))]


def is_same(ours: Json, theirs: Json) -> bool:
    """Return whether two values are equal; numbers are, if a float cannot tell them apart."""
    numbers = (int, float)
    if isinstance(ours, numbers) and isinstance(theirs, numbers):
        return isinstance(ours, bool) == isinstance(theirs, bool) and float(ours) == float(theirs)
    return type(ours) is type(theirs) and ours == theirs


def test_scalars_mean_the_same(tmp_path: Path) -> None:
    chance = random.Random(14)
    scalars = {"".join(chance.choices(PIECES, k=chance.randint(1, 3))) for _ in range(3000)}
    readable = {}
    for scalar in sorted(scalars):
        try:
            document = read_document(f"k: {scalar}\n")
        except YamlRefused:
            continue
        if isinstance(document, dict) and list(document) == ["k"]:
            readable[scalar] = document["k"]

    theirs = read_with_helm([f"k: {scalar}\n" for scalar in readable], tmp_path)

    different = [
        (scalar, ours, their)
        for (scalar, ours), their in zip(readable.items(), theirs, strict=True)
        if not isinstance(their, dict) or not is_same(ours, their.get("k"))
    ]
    assert different == []


def test_what_we_write_is_read_by_helm_as_it_was(tmp_path: Path) -> None:
    chance = random.Random(15)
    words = [
        *PIECES,
        "a: b",
        "- x",
        "a\nb\n",
        " lead",
        "trail ",
        "it's",
        '"q"',
        "é",
        "\t",
        "%",
        "&a",
        "*a",
        "|",
    ]
    values: list[Json] = [
        {f"k{n}": chance.choice([chance.choice(words), [chance.choice(words), None, True, 7]])}
        for n in range(1500)
    ]

    theirs = read_with_helm([write_documents([value]) for value in values], tmp_path)

    assert [pair for pair in zip(values, theirs, strict=True) if pair[0] != pair[1]] == []
