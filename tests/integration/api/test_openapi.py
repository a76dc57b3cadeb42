"""The committed OpenAPI documents are what the code says, and describe every answer."""

from pathlib import Path
from typing import Any

import pytest

from exclave.api.openapi import render_control, render_runner, write_documents, write_text
from tests.integration.api.matrix import ROWS

FOLDER = Path(__file__).parents[3] / "openapi"
DOCUMENTS = {"control": render_control, "runner": render_runner}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_committed_document_is_up_to_date(name: str) -> None:
    committed = (FOLDER / f"{name}.json").read_text()

    assert committed == write_text(DOCUMENTS[name]()), "run `python -m exclave.api.openapi`"


def test_the_writer_writes_both(tmp_path: Path) -> None:
    write_documents(tmp_path / "out")

    assert {file.name for file in (tmp_path / "out").iterdir()} == {"control.json", "runner.json"}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_route_is_described_with_its_problems_and_credentials(name: str) -> None:
    document: Any = DOCUMENTS[name]()
    described = {
        (method.upper(), path): operation
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    }
    rows = {(r.method, r.route): r for r in ROWS if r.app == name and r.route != "/openapi.json"}

    assert described.keys() == rows.keys()
    for key, operation in described.items():
        assert operation["responses"]["default"]["content"].keys() == {"application/problem+json"}
        assert operation["description"]
        assert _tell_status(operation) == max(
            (status for status in rows[key].expected.values() if status < 300),
            default=200,  # of attestation, which no caller of the matrix gets through
        )
        assert ("security" in operation) == (rows[key].expected["none"] == 401)
    names = [operation["operationId"] for operation in described.values()]
    assert len(names) == len(set(names))


def _tell_status(operation: dict[str, Any]) -> int:
    return next(int(status) for status in operation["responses"] if status != "default")


def test_every_post_of_the_control_api_takes_an_idempotency_key() -> None:
    document: Any = render_control()
    posts = [item["post"] for item in document["paths"].values() if "post" in item]

    without = [
        post["operationId"]
        for post in posts
        if not any(parameter["name"] == "Idempotency-Key" for parameter in post["parameters"])
    ]

    assert posts
    assert without == []
