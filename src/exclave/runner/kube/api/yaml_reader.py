"""Read YAML documents as Kubernetes reads them, within limits and with line numbers.

Values are built from parser events: so depth, size and the growth by aliases are limited before
memory is spent, and nothing but JSON values can come out.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Final

import yaml

from exclave.base.errors import Problem
from exclave.base.json_values import Json
from exclave.runner.kube.api.yaml_scalars import name_key, resolve_scalar

MAX_TEXT: Final = 4 << 20
MAX_EXPANDED: Final = 20 << 20
MAX_DOCUMENTS: Final = 5000
_DEEPEST: Final = 100
_NODE_BYTES: Final = 16
"""What a node counts for beside its text."""
_MERGE: Final = "<<"
_LOADER: Final[type] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlRefused(Problem):
    """The text is not YAML that a cluster would read. `line` is where."""

    code: ClassVar = "yaml_refused"

    def __init__(self, message: str, line: int | None = None) -> None:
        where = "" if line is None else f"line {line}: "
        super().__init__(f"{where}{message}")
        self.line = line


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """One document of a text: its number and first line, both from 1."""

    number: int
    line: int
    value: Json


def read_documents(text: str) -> list[SourceDocument]:
    """Return the documents of a text without the empty ones; CPU-bound, for large texts seconds."""
    if len(text.encode()) > MAX_TEXT:
        message = f"a text may have {MAX_TEXT >> 20} MiB; split it"
        raise YamlRefused(message)
    documents = []
    try:
        for number, document in enumerate(_Builder(yaml.parse(text, Loader=_LOADER)).build(), 1):
            if number > MAX_DOCUMENTS:
                message = f"a text may have {MAX_DOCUMENTS} documents"
                raise YamlRefused(message)
            documents.append(SourceDocument(number, document.line, document.value))
    except yaml.MarkedYAMLError as error:
        raise _explain(error) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise YamlRefused("it has a character that YAML does not know") from error
    return [document for document in documents if document.value is not None]


def read_document(text: str) -> Json:
    """Return the value of a text that has at most one document; None for an empty text."""
    documents = read_documents(text)
    if len(documents) > 1:
        raise YamlRefused("only one document is expected", documents[1].line)
    return documents[0].value if documents else None


@dataclass(frozen=True, slots=True)
class _Node:
    value: Json
    line: int
    size: int
    is_merge: bool = False


@dataclass(slots=True)
class _Builder:
    """Builds values from the events of a parser."""

    events: Iterator[yaml.Event]
    size: int = 0
    anchors: dict[str, _Node] = field(default_factory=dict)

    def build(self) -> Iterator[_Node]:
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                self.anchors = {}
                yield self._read(next(self.events), 0)

    def _read(self, event: yaml.Event, depth: int) -> _Node:
        line = 1 if event.start_mark is None else event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            return self._copy(event.anchor or "", line)
        before = self.size
        self._grow(_NODE_BYTES, line)
        if depth > _DEEPEST:
            message = f"nested deeper than {_DEEPEST} levels"
            raise YamlRefused(message, line)
        is_merge = False
        value: Json
        match event:
            case yaml.ScalarEvent():
                self._grow(len(event.value), line)
                value = _resolve(event, line)
                is_merge = event.value == _MERGE and event.implicit[0]
            case yaml.SequenceStartEvent():
                value = [node.value for node in self._list(depth, yaml.SequenceEndEvent)]
            case yaml.MappingStartEvent():
                value = _merge(list(self._list(depth, yaml.MappingEndEvent)))
            case _:
                raise YamlRefused("it cannot be read", line)
        node = _Node(value, line, self.size - before, is_merge)
        if event.anchor:
            self.anchors[event.anchor] = node
        return node

    def _list(self, depth: int, end: type[yaml.Event]) -> Iterator[_Node]:
        for event in self.events:
            if isinstance(event, end):
                return
            yield self._read(event, depth + 1)

    def _copy(self, anchor: str, line: int) -> _Node:
        node = self.anchors.get(anchor)
        if node is None:
            message = f"the alias `*{anchor}` has no anchor before it"
            raise YamlRefused(message, line)
        self._grow(node.size, line)
        return _Node(copy.deepcopy(node.value), line, node.size)

    def _grow(self, size: int, line: int) -> None:
        self.size += size
        if self.size > MAX_EXPANDED:
            message = f"with its aliases written out it is larger than {MAX_EXPANDED >> 20} MiB"
            raise YamlRefused(message, line)


def _resolve(event: yaml.ScalarEvent, line: int) -> Json:
    try:
        return resolve_scalar(event.value, tag=event.tag, is_plain=event.implicit[0])
    except ValueError as error:
        raise YamlRefused(str(error), line) from error


def _merge(nodes: list[_Node]) -> dict[str, Json]:
    """Return a mapping of its keys and values in turn; what `<<` brings in never wins."""
    own: dict[str, Json] = {}
    lines: dict[str, int] = {}
    merged: list[_Node] = []
    for key, value in zip(nodes[::2], nodes[1::2], strict=True):
        if key.is_merge:
            merged.append(value)
            continue
        try:
            name = name_key(key.value)
        except ValueError as error:
            raise YamlRefused(str(error), key.line) from error
        if name in own:
            message = f"the key `{name}` is already in line {lines[name]}"
            raise YamlRefused(message, key.line)
        own[name], lines[name] = value.value, key.line
    for value in merged:
        for mapping in value.value if isinstance(value.value, list) else [value.value]:
            if not isinstance(mapping, dict):
                raise YamlRefused("`<<` needs a mapping or a list of mappings", value.line)
            own = {**mapping, **own}
    return own


def _explain(error: yaml.MarkedYAMLError) -> YamlRefused:
    mark = error.problem_mark or error.context_mark
    line = None if mark is None else mark.line + 1
    return YamlRefused(error.problem or "it cannot be read", line)
