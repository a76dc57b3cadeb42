"""A Stack as files: `python -m tests.unit.stacks.gcp.golden_kit` writes them."""

from collections.abc import Mapping
from pathlib import Path

from exclave.stacks.gcp.stack import GcpStack
from exclave.stacks.model import NestedModel
from tests.support.gcp_stacks import make_model

FOLDER = Path(__file__).parent / "golden"
MODEL = make_model(
    nested=(
        NestedModel(
            "network-tools",
            0,
            "acme/stacks//gcp/modules/tools?ref=v1.2.0",
            parameters={"zone": "a ${b}"},
        ),
    )
)


def render() -> Mapping[str, str]:
    """Return the files of the form for Terraform by name."""
    files = GcpStack().render(MODEL).files
    return {file.name: file.content for file in files if file.form == "terraform"}


def read() -> Mapping[str, str]:
    """Return the files as they are kept."""
    files = (file for file in sorted(FOLDER.rglob("*")) if file.is_file())
    return {file.relative_to(FOLDER).as_posix(): file.read_text(encoding="utf-8") for file in files}


def write() -> None:
    """Keep the files as they are now."""
    for name, text in render().items():
        file = FOLDER / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
