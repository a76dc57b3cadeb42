# ruff: noqa: INP001 - a program beside the pages it writes, not a package
"""Writes the reference of the app directory from the field descriptions.

`python docs/generate_app_config.py` writes the pages; a test compares them with what is committed.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from exclave.appconfig.catalog import KINDS, FileKind, walk_tables
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.model.fields import Field, Need, Shape, Since, Table

FOLDER = Path(__file__).parent / "reference" / "app-config"
NOTE = (
    "<!-- Written by `python docs/generate_app_config.py`. "
    "Change the code, then run it again. -->\n"
)
BROKEN = Path(__file__).parents[1] / "tests" / "fixtures" / "apps" / "broken"
_SHAPES: Mapping[Shape, str] = {
    Shape.TEXT: "text",
    Shape.FLAG: "true or false",
    Shape.NUMBER: "whole number",
    Shape.ANY: "anything",
    Shape.TEXTS: "list of texts",
    Shape.TEXT_MAP: "map of texts",
    Shape.FLAG_MAP: "map of switches",
    Shape.MAPS: "map of texts",
    Shape.TABLE: "table",
    Shape.TABLES: "list of tables",
    Shape.TABLE_MAP: "map of tables",
}
_NEEDS: Mapping[Need, str] = {Need.REQUIRED: "yes", Need.WANTED: "wanted", Need.OPTIONAL: ""}

_HEAD = "| kind | read from | what it is |\n|---|---|---|"
_INTRO = """\
# The app directory

An app is one directory of TOML files, named like the directory. `metadata.toml`, `sandbox.toml`,
`runner.toml` and the folder `components/` must exist; the rest may. `exclave apps validate` checks
a directory, and `exclave apps schema <kind>` prints the JSON Schema of a kind for your editor.
"""
_RULES = """\
Folders are read at any depth, in the order of paths; names of files mean nothing. A section is
written as a file or as a folder, never as both. A file of no bytes counts as absent. What is wrong
with a directory is explained in [diagnostics](diagnostics.md).

## Values that name a file

Keys marked *file* take text, or the name of a file that holds it: `./path`, `../path`. Relative
names start from the folder of the kind (`components/`, `actions/`, `permissions/`), for policies
and named policies from the folder of the file, otherwise from the app directory; the file's own
folder and the app directory are tried next. A text that starts with `./nuon` is never a reference.
Nothing outside the app directory is read, except through symbolic links to files of the same
repository. Remote files (`https://…`, `git::…`) are named in a warning and not read;
`exclave apps validate --fetch` gets those behind https.

## Values that are not text

Maps of texts also take numbers, switches, dates, lists and tables. Numbers and switches are written
as in TOML, dates as ISO 8601, lists and tables as compact JSON with sorted keys. In Helm `values`
tables become dotted keys. Keys of single texts take whole numbers and switches where nothing is
lost; a version such as `1.10` needs its quotes.
"""


def write_pages() -> Iterator[tuple[str, str]]:
    """Write all pages, by their file names."""
    yield "index.md", write_index()
    yield "diagnostics.md", write_diagnostics()
    for kind in KINDS.values():
        yield f"{kind.name}.md", write_kind(kind)


def write_index() -> str:
    """Write the table of all file kinds."""
    rows = [
        f"| [{each.name}]({each.name}.md) | `{each.where}` | {_doc(each.model)} |"
        for each in KINDS.values()
    ]
    return f"{NOTE}\n{_INTRO}\n{_HEAD}\n" + "\n".join(rows) + f"\n\n{_RULES}"


def write_kind(kind: FileKind) -> str:
    """Write the page of a file kind."""
    parts = [NOTE, f"# {kind.name}\n", f"{_doc(kind.model)} Read from `{kind.where}`.\n"]
    for path, table in walk_tables(kind.model):
        if path:
            parts.append(f"\n## {path}\n\n{_doc(table)}\n")
        parts.append("| key | type | needed | default | since | meaning | example |")
        parts.append("|---|---|---|---|---|---|---|")
        parts += [_write_field(key, field) for key, field in table.FIELDS.items()]
        parts += _write_others(table)
    return "\n".join(parts) + "\n"


def write_diagnostics() -> str:
    """Write what each code means, with an example."""
    parts = [NOTE, "# Diagnostics\n"]
    parts.append("Every finding has a stable code. An example of each:\n")
    for code in Code:
        shown = (BROKEN / f"{code}.txt").read_text().rstrip().rpartition("\n\n")[0]
        parts.append(f"## {code}\n\n{code.doc}\n\n```text\n{shown}\n```\n")
    return "\n".join(parts)


def _write_field(key: str, field: Field) -> str:
    notes = [field.doc.replace("|", "\\|")]
    if field.choices:
        notes.append("One of " + ", ".join(f"`{each}`" for each in field.choices) + ".")
    if field.templated:
        notes.append("*template*")
    if field.reference or field.path:
        notes.append("*file*")
    if field.deprecated:
        notes.append(f"Deprecated. {field.deprecated}")
    default = "" if field.default in (None, "", (), {}, False, 0) else f"`{_toml(field.default)}`"
    example = f"`{key} = {field.example}`".replace("|", "\\|") if field.example else ""
    cells = [
        f"`{key}`",
        _SHAPES[field.shape],
        _NEEDS[field.need],
        default,
        "new" if field.since is Since.NEW else "",
        " ".join(notes),
        example,
    ]
    return f"| {' | '.join(cells)} |"


def _write_others(table: type[Table]) -> list[str]:
    lines = [f"\n`{alias}` is the same as `{key}`." for alias, key in table.ALIASES.items()]
    for key, dead in table.DEAD.items():
        if not dead.silent:
            verb = "is refused" if dead.error else "has no effect"
            lines.append(f"\n`{key}` {verb}. {dead.hint}")
    return lines


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool | int) else f'"{value}"'


def _doc(model: type[Table]) -> str:
    return (model.__doc__ or "").strip().split("\n", 1)[0]


def main() -> None:
    """Write all pages to their folder."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in write_pages():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
