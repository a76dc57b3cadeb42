"""The loader: reads every section and file of an app directory and reports all findings."""

import dataclasses
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.positions import KeyPath
from exclave.appconfig.diagnostics.report import Place, Report, guess, list_words
from exclave.appconfig.diagnostics.sources import Source
from exclave.appconfig.model.app import Entry
from exclave.appconfig.model.fields import Shape, Table
from exclave.appconfig.model.kinds.actions import Action
from exclave.appconfig.model.kinds.components import Component
from exclave.appconfig.model.kinds.inputs import Input, InputGroup, InputsFile
from exclave.appconfig.model.kinds.permissions import Role
from exclave.appconfig.model.kinds.policies import Policy
from exclave.appconfig.model.kinds.runbooks import Runbook
from exclave.appconfig.model.sections import (
    COMPONENT_TYPES,
    KNOWN_NAMES,
    OWN,
    SECTIONS,
    FileForm,
    FolderForm,
    Section,
)
from exclave.appconfig.reading.decode import Decoder
from exclave.appconfig.reading.directory import Directory, leaves
from exclave.appconfig.reading.references import Fetcher, References
from exclave.appconfig.reading.toml_files import parse_toml

_SINGLE = ("metadata", "sandbox", "runner", "stack", "branches", "installs_source")
"""Sections whose file is a single part, not a list of parts."""
_MAX_INCLUDES = 16
_SALVAGED: tuple[type[Table], ...] = (Component, Action, Runbook, Input, InputGroup)
_NAMES = re.compile(r"""^name\s*=\s*["']([\w.-]+)["']""", re.MULTILINE)


class Loader:
    """Reads the sections of an app directory."""

    def __init__(self, directory: Directory, fetcher: Fetcher | None) -> None:
        self.directory = directory
        self.report: Report = directory.report
        self.fetcher = fetcher

    def load(self) -> tuple[Entry, ...]:
        """Return all entries of the directory."""
        self._look_around()
        return tuple(entry for section in SECTIONS for entry in self._load_section(section))

    def load_installs(self, paths: Sequence[str]) -> tuple[Entry, ...]:
        """Return the installs in files at any paths."""
        section = next(section for section in SECTIONS if section.name == "installs")
        form = section.folders[0]
        return tuple(entry for path in paths for entry in self._load_one(section, form, path))

    def _load_section(self, section: Section) -> Iterator[Entry]:
        has_file = section.file is not None and self.directory.has(section.file.path)
        files = {form: self._list_files(form) for form in section.folders}
        if section.file and has_file:
            self._check_both_forms(section.file, files)
            yield from self._load_file(section, section.file)
        elif section.required and not any(map(self.directory.has_folder, _folders(section))):
            self._report_missing(section)
        for form, paths in files.items():
            for path in paths:
                yield from self._load_one(section, form, path)

    def _list_files(self, form: FolderForm) -> list[str]:
        files = self.directory.walk(form.path)
        return [
            path
            for path in files
            if not (form.without and path.startswith(f"{form.without}/"))
            and self.directory.has(path)
        ]

    def _load_file(self, section: Section, form: FileForm) -> Iterator[Entry]:
        read = self._read(form.path)
        if read is None:
            models = [Input, InputGroup] if form.model is InputsFile else [form.model]
            yield from self._salvage(section, form.path, models)
            return
        source, data = read
        if not data and not section.required:
            return
        decoder = self._open(source, data, form.model, form.base)
        value = decoder.decode(form.model, data)
        if section.name in _SINGLE:
            yield Entry(section.name, value, Place(source), tuple(decoder.texts))
            return
        yield from _split(section.name, value, decoder)
        if isinstance(value, InputsFile):
            yield from self._load_more_inputs(section, form, value, source)

    def _load_more_inputs(
        self, section: Section, form: FileForm, value: InputsFile, source: Source
    ) -> Iterator[Entry]:
        paths = [*([value.source] if value.source else []), *value.sources]
        for path in dict.fromkeys(paths[:_MAX_INCLUDES]):
            key = "source" if path == value.source else "sources"
            included = self._read_include(path, Place(source, (key,)))
            if included is not None:
                decoder = self._open(included[0], included[1], form.model, form.base)
                table = decoder.decode(form.model, included[1])
                yield from _split(section.name, table, decoder)

    def _load_one(self, section: Section, form: FolderForm, path: str) -> Iterator[Entry]:
        read = self._read(path)
        if read is None:
            yield from self._salvage(section, path, [form.model])
            return
        source, data = read
        if not data:
            message = "the file holds no key and is skipped"
            self.report.warn(Code.FILE_EMPTY, Place(source), message, "Remove it, or fill it in.")
            return
        decoder = self._open(source, data, form.model, form.base)
        model = form.model
        if issubclass(model, Component):
            model = self._choose_component(decoder, data)
        value = decoder.decode(model, data) if model is not Component else _sketch(data)
        if isinstance(value, Policy) and not value.name:
            value = Policy(**{**vars(value), "name": _stem(source.path)})
        yield Entry(section.name, value, Place(source), tuple(decoder.texts))

    def _salvage(
        self, section: Section, path: str, models: Sequence[type[Table]]
    ) -> Iterator[Entry]:
        """Yield the names in a file that cannot be parsed, so that references to them resolve."""
        source = self.directory.read(path, toml=True) or self.directory.damaged.get(path)
        for model in models:
            if source is not None and model in _SALVAGED:
                for name in _NAMES.findall(source.text):
                    yield Entry(section.name, model(name=name), Place(source))

    def _open(
        self, source: Source, data: dict[str, object], model: type[Table], base: str
    ) -> Decoder:
        own = posixpath.dirname(source.path)
        first = own if base == OWN else base
        # Last, the folder of the section, where older tools looked.
        section = source.path.partition("/")[0].removesuffix(".toml")
        bases = [
            folder
            for folder in (first, own, "", section)
            if self.directory.has_folder(folder or ".")
        ]
        references = References(self.directory, tuple(dict.fromkeys(bases)), self.fetcher)
        decoder = Decoder(source, self.report, references)
        if "source" in data and ("source" in model.FIELDS and model is not InputsFile):
            included = self._read_include(data["source"], Place(source, ("source",)))
            if included is not None:
                decoder.included = dict.fromkeys(included[1], included[0])
                data |= included[1]
        return decoder

    def _read_include(self, path: object, place: Place) -> tuple[Source, dict[str, object]] | None:
        if not isinstance(path, str) or not path:
            return None
        clean = posixpath.normpath(path)
        if leaves(path) or "\0" in path:
            message = f"`{path}` is outside the app directory"
            self.report.error(Code.REFERENCE_OUTSIDE, place, message, "Copy the file into it.")
            return None
        if not self.directory.has(clean):
            hint = f"Looked for `{clean}`: `source` starts from the app directory."
            self.report.error(Code.REFERENCE_MISSING, place, f"there is no file `{path}`", hint)
            return None
        return self._read(clean)

    def _read(self, path: str) -> tuple[Source, dict[str, object]] | None:
        source = self.directory.read(path, toml=True)
        data = None if source is None else parse_toml(source, self.report)
        return None if source is None or data is None else (source, data)

    def _choose_component(self, decoder: Decoder, data: dict[str, object]) -> type[Component]:
        place, kind = decoder.place(("type",)).value, data.get("type")
        known = f"Possible are {list_words(COMPONENT_TYPES)}."
        if kind is None:
            message = "`type` is missing: every .toml file below components/ is a component"
            stray = "" if "name" in data else "Move the file elsewhere if it is not one. "
            self.report.error(Code.MISSING_KEY, decoder.place(()), message, stray + known)
        elif not isinstance(kind, str):
            self.report.error(Code.WRONG_TYPE, place, "`type` must be text", known)
        elif kind not in COMPONENT_TYPES:
            near = "container_image" if "image" in kind else guess(kind, COMPONENT_TYPES)
            hint = f"Did you mean `{near}`? {known}" if near else known
            message = f"`{kind}` is not a type of component"
            self.report.error(Code.UNKNOWN_CHOICE, place, message, hint)
        else:
            return COMPONENT_TYPES[kind]
        return Component

    def _check_both_forms(self, form: FileForm, files: Mapping[FolderForm, list[str]]) -> None:
        """Report a section in two forms, unless one of them is empty."""
        folders = [folder.path for folder, paths in files.items() if paths]
        if not folders:
            return
        paths = [path for file in files.values() for path in file]
        clear = not self._holds_keys(form.path) or not any(map(self._holds_keys, paths))
        also = " and ".join(f"{folder}/" for folder in folders)
        message = f"both {form.path} and {also} exist"
        hint = "Keep one of the two forms: move everything into the folder, or into the file."
        tell = self.report.warn if clear else self.report.error
        tell(Code.BOTH_FORMS, form.path, message, hint)

    def _holds_keys(self, path: str) -> bool:
        source = self.directory.read(path, toml=True)
        lines = source.text.splitlines() if source else []
        return any(line.strip() and not line.lstrip().startswith("#") for line in lines)

    def _report_missing(self, section: Section) -> None:
        if section.file:
            message = f"{section.file.path} is missing or empty"
            hint = "Every app needs it; `exclave apps new` writes one to start from."
            self.report.error(Code.FILE_MISSING, section.file.path, message, hint)
        elif not self.directory.sealed:  # an archive holds no empty folders
            hint = "Make the folder, even if there is nothing in it yet."
            message = "the folder components/ does not exist"
            self.report.error(Code.FOLDER_MISSING, "components", message, hint)

    def _look_around(self) -> None:
        """Report files and folders that are not read, but whose names are close to known ones."""
        for name in self.directory.list_names():
            if name in KNOWN_NAMES or name == "lint.toml":
                continue
            if name == "installer.toml":
                message = "installer.toml is an old form that nothing uses"
                self.report.warn(Code.FILE_IGNORED, name, message, "Remove the file.")
            elif name.startswith("nuon.") and name.endswith(".toml"):
                message = f"{name} holds a whole app in one file, which is not read any more"
                hint = "Write one file per section; `exclave apps new` shows the layout."
                has_both = self.directory.has("metadata.toml")
                tell = self.report.warn if has_both else self.report.error
                tell(Code.LEGACY_FORM, name, message, hint)
            elif name.endswith(".toml") or self.directory.has_folder(name):
                self._report_near(name)

    def _report_near(self, name: str) -> None:
        is_file = name.endswith(".toml")
        known = [name for name in KNOWN_NAMES if name.endswith(".toml") is is_file]
        near = guess(name, known)
        taken = near and (self.directory.has(near) or self.directory.has_folder(near))
        if near and not taken and (is_file or self.directory.walk(name)):
            message = f"`{name}` is not read"
            self.report.warn(Code.UNKNOWN_FILE, name, message, f"Did you mean `{near}`?")


def _folders(section: Section) -> list[str]:
    return [form.path for form in section.folders]


def _sketch(data: dict[str, object]) -> Component:
    """Return a component of unknown type with only its name, so that references to it resolve."""
    name, needs = data.get("name"), data.get("dependencies")
    return Component(
        name=name if isinstance(name, str) else "",
        dependencies=tuple(map(str, needs)) if isinstance(needs, list) else (),
    )


def _split(section: str, value: Table, decoder: Decoder) -> Iterator[Entry]:
    """Yield the parts in a file that lists them."""
    for key, spec in type(value).FIELDS.items():
        content = getattr(value, spec.attribute)
        if spec.shape is Shape.TABLES:
            for index, table in enumerate(content):
                yield _make_entry(section, key, table, (key, index), decoder)
        elif spec.shape is Shape.TABLE and content is not None:
            yield _make_entry(section, key, content, (key,), decoder)


def _make_entry(section: str, key: str, value: Table, at: KeyPath, decoder: Decoder) -> Entry:
    if isinstance(value, Role) and section == "permissions":
        kind = "custom" if key == "custom_roles" else key.removesuffix("_role")
        value = Role(**{**vars(value), "type": kind})
    if isinstance(value, Policy) and not value.name:
        text = next((text for text in decoder.texts if text.at == (*at, "contents")), None)
        if text is not None and text.file is not None:
            value = Policy(**{**vars(value), "name": _stem(text.file.path)})
    owner = "named_policies" if key == "named_policies" and section == "permissions" else section
    size = len(at)
    texts = tuple(
        dataclasses.replace(text, at=text.at[size:])
        for text in decoder.texts
        if text.at[:size] == at
    )
    return Entry(owner, value, Place(decoder.source, at), texts)


def _stem(path: str) -> str:
    return posixpath.splitext(posixpath.basename(path))[0]
