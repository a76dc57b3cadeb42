"""The project's pages as tests see them: text, prose without code, links, headings, commands."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]

_FENCE = re.compile(r"^( *)```([a-z]*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")
_BELOW = re.MULTILINE | re.DOTALL
_STOPS = frozenset({"|", ">", "<", "&&", ";"})


@dataclass(frozen=True)
class Page:
    """One Markdown file."""

    file: Path

    @property
    def name(self) -> str:
        return str(self.file.relative_to(ROOT))

    @property
    def text(self) -> str:
        return self.file.read_text(encoding="utf-8")

    @property
    def prose(self) -> str:
        """The text without fenced code."""
        return _FENCE.sub("", self.text)

    def fences(self, language: str) -> list[str]:
        return [found[3] for found in _FENCE.finditer(self.text) if found[2] == language]

    def links(self) -> list[str]:
        return _LINK.findall(_CODE.sub("", self.prose))

    def codes(self) -> list[str]:
        return _CODE.findall(self.prose)

    def anchors(self) -> set[str]:
        return {
            make_anchor(line.lstrip("# ")) for line in self.prose.splitlines() if line[:1] == "#"
        }

    def section(self, heading: str) -> str:
        """The text below a heading, up to the next heading."""
        found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", self.prose, _BELOW)
        assert found is not None, heading
        return found[1]

    def first_cells(self, heading: str) -> list[str]:
        """The first cells of the rows of a section's tables, without their heads."""
        rows = re.findall(r"^\| ([^|]+) \|", self.section(heading), re.MULTILINE)
        return [cell for cell in rows if cell.startswith("`")]

    def first_column(self, heading: str) -> list[str]:
        """Every name in backticks of the first column of a section's tables."""
        return [name for cell in self.first_cells(heading) for name in _CODE.findall(cell)]

    def commands(self) -> Iterator[list[str]]:
        """Every `exclave` command line of the page's console examples, as words."""
        for block in self.fences("console"):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line.removeprefix("$ "), comments=True)
                while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                    words = words[1:]
                if words[:1] == ["exclave"]:
                    end = next((at for at, word in enumerate(words) if word in _STOPS), len(words))
                    yield words[1:end]


def list_pages() -> list[Page]:
    """All pages of the project."""
    top = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
    return [Page(ROOT / name) for name in top] + [
        Page(file) for file in sorted((ROOT / "docs").rglob("*.md"))
    ]


def make_anchor(heading: str) -> str:
    """Write a heading as the anchor that readers of Markdown make of it."""
    plain = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return plain.replace(" ", "-")
