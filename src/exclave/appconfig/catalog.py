"""All file kinds by name, as the schema command and the reference pages list them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from exclave.appconfig.diagnostics.report import list_words, suggest
from exclave.appconfig.model.fields import Field, Table
from exclave.appconfig.model.kinds.components import Component
from exclave.appconfig.model.sections import COMPONENT_TYPES, SECTIONS, FileForm, FolderForm
from exclave.base.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class FileKind:
    """One kind of file."""

    name: str
    model: type[Table]
    where: str
    """The file or folder that it is read from."""


def _list_kinds() -> Iterator[FileKind]:
    names: Mapping[str, str] = {
        "inputs": "input",
        "input_groups": "input_group",
        "secrets": "secret",
        "permissions": "role",
        "permissions/policies": "named_policy",
        "break_glass": "break_glass_role",
        "policies": "policy",
        "kubernetes_contexts": "kubernetes_context",
        "actions": "action",
        "runbooks": "runbook",
        "branches": "branch",
        "installs": "install",
    }
    seen: set[str] = set()
    for section in SECTIONS:
        forms: list[FileForm | FolderForm] = [*section.folders]
        if section.file is not None:
            forms.insert(0, section.file)
        for form in forms:
            if form.model is Component:
                for kind, model in COMPONENT_TYPES.items():
                    yield FileKind(kind, model, "components/")
                continue
            is_file = isinstance(form, FileForm)
            name = form.path.removesuffix(".toml") if is_file else names[form.path]
            if name not in seen:
                seen.add(name)
                yield FileKind(name, form.model, form.path if is_file else f"{form.path}/")


KINDS: Mapping[str, FileKind] = {kind.name: kind for kind in _list_kinds()}
_SHORT: Mapping[str, str] = {"helm": "helm_chart", "terraform": "terraform_module"}


def find_kind(name: str) -> FileKind:
    """Return a file kind by its name, also with hyphens or in the short form of editor hints."""
    simple = name.replace("-", "_")
    simple = _SHORT.get(simple, simple)
    if simple not in KINDS:
        hint = suggest(simple, KINDS) or f"There are {list_words(KINDS)}."
        raise InvalidInput(f"there is no file kind `{name}`", hint=hint)
    return KINDS[simple]


def walk_tables(model: type[Table]) -> Iterator[tuple[str, type[Table]]]:
    """Yield a table and all nested tables with their key paths; each model once."""
    todo: list[tuple[str, type[Table]]] = [("", model)]
    seen: set[type[Table]] = set()
    while todo:
        path, table = todo.pop(0)
        if table in seen:
            continue
        seen.add(table)
        yield path, table
        todo += [
            (f"{path}.{key}" if path else key, field.model)
            for key, field in table.FIELDS.items()
            if field.model is not None
        ]


def walk_fields() -> Iterator[tuple[type[Table], str, Field]]:
    """Yield every field of every kind, once."""
    seen: set[tuple[type[Table], str]] = set()
    for kind in KINDS.values():
        for _, table in walk_tables(kind.model):
            for key, field in table.FIELDS.items():
                if (table, key) not in seen:
                    seen.add((table, key))
                    yield table, key, field
