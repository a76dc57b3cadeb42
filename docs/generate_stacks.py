# ruff: noqa: INP001 - a program beside the pages it writes, not a package
"""Generates the pages about the Stacks of clouds from the model of one with a role of each kind.

`python -m docs.generate_stacks` writes them; a test compares them with what is committed.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from docs.stack_pages import aws, azure, gcp

DOCS: Final = Path(__file__).parent
PAGES: Final[Mapping[str, Callable[[], Mapping[str, Iterable[str]]]]] = {
    "aws": aws.list_tables,
    "azure": azure.list_tables,
    "gcp": gcp.list_tables,
}
"""What lists the tables of each cloud; the words between them are in `stack_pages/<cloud>.txt`."""


def find_page(cloud: str) -> Path:
    """Return where the page about a cloud is."""
    return DOCS / "reference" / f"stack-{cloud}.md"


def write_page(cloud: str) -> str:
    """Return the text of the page about a cloud."""
    text = (DOCS / "stack_pages" / f"{cloud}.txt").read_text(encoding="utf-8")
    for name, lines in PAGES[cloud]().items():
        text = text.replace(f"{{{name}}}", "\n".join(lines))
    return (
        f"<!-- Written by `python -m docs.generate_stacks` from docs/stack_pages/{cloud}.txt and"
        f" the code. Change those, then run it again. -->\n{text}"
    )


def main(argv: Iterable[str]) -> int:
    """Write the pages; with `--check`, only report which ones are out of date."""
    is_check = "--check" in argv
    old = [cloud for cloud in PAGES if not _is_current(cloud)]
    for cloud in old:
        if not is_check:
            find_page(cloud).write_text(write_page(cloud), encoding="utf-8")
        sys.stderr.write(f"{'out of date' if is_check else 'written'}: {find_page(cloud).name}\n")
    return 1 if old and is_check else 0


def _is_current(cloud: str) -> bool:
    page = find_page(cloud)
    return page.exists() and page.read_text(encoding="utf-8") == write_page(cloud)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
