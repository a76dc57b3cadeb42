"""Both forms of three Stacks as files: `python -m tests.unit.stacks.aws.golden_kit` writes them."""

from collections.abc import Mapping
from pathlib import Path

from exclave.stacks.aws.stack import AwsStack
from tests.support.aws_variants import VARIANTS

FOLDER = Path(__file__).parent / "golden"
KEPT = ("small", "full", "nested")


def render(variant: str) -> Mapping[str, str]:
    """Return the files of a Stack by name."""
    return {file.name: file.content for file in AwsStack().render(VARIANTS[variant]).files}


def read(variant: str) -> Mapping[str, str]:
    """Return the files as they are kept."""
    folder = FOLDER / variant
    return {
        file.relative_to(folder).as_posix(): file.read_text(encoding="utf-8")
        for file in sorted(folder.rglob("*.json"))
    }


def write() -> None:
    """Keep the files as they are now."""
    for variant in KEPT:
        for name, text in render(variant).items():
            file = FOLDER / variant / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
