"""The committed OpenAPI documents: `python -m exclave.api.openapi [FOLDER]` updates them."""

import json
import sys
from pathlib import Path
from typing import cast

from exclave.api.control import build_control_app
from exclave.api.runner.app import build_inner_app
from exclave.base.json_values import Json, JsonObject
from exclave.control.deps import Deps


def render_control() -> dict[str, Json]:
    """Return the OpenAPI document of the Control API."""
    return build_control_app(_NO_DEPS).openapi()


def render_runner() -> dict[str, Json]:
    """Return the OpenAPI document of the Runner API."""
    return build_inner_app(_NO_DEPS).openapi()


def write_text(document: JsonObject) -> str:
    """Return a document as the text of its file."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def write_documents(folder: Path) -> None:
    """Write both files."""
    folder.mkdir(exist_ok=True)
    for name, document in (("control", render_control()), ("runner", render_runner())):
        (folder / f"{name}.json").write_text(write_text(document), encoding="utf-8")


_NO_DEPS = cast("Deps", None)
"""A document needs no database: nothing is called."""

if __name__ == "__main__":
    write_documents(Path(sys.argv[1] if len(sys.argv) > 1 else "openapi"))
