# ruff: noqa: INP001 - the configuration of Sphinx, not a package
"""Configuration of the site that `make docs` builds from the Markdown pages of the repository."""

from sphinx.application import Sphinx

project = "Exclave"
root_doc = "docs/index"
html_title = project

# The source folder is the repository, so that links between pages are the same here and in a
# browser of the repository.
include_patterns = ["*.md", "docs/**.md", "examples/*/README.md"]
exclude_patterns = [".*", "openapi", "requirements", "site", "src", "tests"]

extensions = ["myst_parser", "sphinxcontrib.mermaid"]
myst_fence_as_directive = ["mermaid"]
myst_heading_anchors = 4
html_theme = "furo"
html_copy_source = False
html_show_sphinx = False

PROJECT = ("README", "CONTRIBUTING", "SECURITY", "CHANGELOG", "examples/*/README")
SECTIONS = {
    "Start": ["quickstart", "glossary", "architecture"],
    "Concepts": ["concepts/*"],
    "How to": ["how-to/*"],
    "Reference": ["reference/*", "reference/app-config/*"],
    "Internals": ["internals/*"],
    "Decisions": ["adr/*"],
    "Project": [f"../{page}" for page in PROJECT],
}


def write_contents() -> str:
    """Write the table of contents of the sidebar."""
    lists = (
        "\n".join(["```{toctree}", ":hidden:", ":glob:", f":caption: {title}", "", *pages, "```"])
        for title, pages in SECTIONS.items()
    )
    return "\n\n" + "\n\n".join(lists) + "\n"


def add_contents(_app: Sphinx, page: str, source: list[str]) -> None:
    """Append the contents to the index: readers of the plain file have its links instead."""
    if page == root_doc:
        source[0] += write_contents()


def setup(app: Sphinx) -> None:
    """Register what is done to pages before they are parsed."""
    app.connect("source-read", add_contents)
