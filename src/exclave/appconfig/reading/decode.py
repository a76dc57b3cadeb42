"""Decoding of TOML tables to typed values: every key is checked, every text is recorded."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.positions import KeyPath
from exclave.appconfig.diagnostics.report import Place, Report
from exclave.appconfig.diagnostics.sources import Source
from exclave.appconfig.model.app import Text
from exclave.appconfig.model.fields import Field, Shape, Table
from exclave.appconfig.model.formats import FORMATS
from exclave.appconfig.model.keys import check_choice, check_needs, report_unknown
from exclave.appconfig.model.natives import name_type, write_text
from exclave.appconfig.reading.references import References


class _Invalid:
    """Marks a value that was reported and is left out."""


INVALID: Final = _Invalid()
_LOSSLESS = (int, bool)
"""Types that are accepted in place of a string, because the conversion is lossless."""


@dataclass(slots=True)
class Decoder:
    """Decodes the tables of one TOML file."""

    source: Source
    report: Report
    references: References
    included: Mapping[str, Source] = field(default_factory=dict)
    """Top-level keys that came from another file."""
    texts: list[Text] = field(default_factory=list)

    def decode(self, model: type[Table], data: Mapping[str, object], at: KeyPath = ()) -> Table:
        """Return a typed value; invalid keys keep their default."""
        values: dict[str, object] = {}
        for written, raw in data.items():
            key = model.ALIASES.get(written, written)
            spec = model.FIELDS.get(key)
            if spec is None:
                report_unknown(self.report, self.place((*at, written)), model, written)
                continue
            value = self._decode_value(spec, raw, (*at, written))
            if value is not INVALID:
                values[spec.attribute] = value
        check_needs(self.report, self.place(at), model, data)
        return model(**values)

    def place(self, at: KeyPath) -> Place:
        """Return the location of a key."""
        source = self.included.get(str(at[0]), self.source) if at else self.source
        return Place(source, at)

    def _decode_value(self, spec: Field, raw: object, at: KeyPath) -> object:
        if spec.deprecated:
            self.report.warn(
                Code.DEPRECATED, self.place(at), f"`{spec.key}` is deprecated", spec.deprecated
            )
        return _SHAPES[spec.shape](self, spec, raw, at)

    def decode_text(self, spec: Field, raw: object, at: KeyPath) -> object:
        """Return a string, or the content of the file that it names."""
        if not isinstance(raw, str) and (spec.is_strict or not isinstance(raw, _LOSSLESS)):
            return self._refuse(spec, raw, at, f'"{write_text(raw)}"' if _is_flat(raw) else "")
        content = write_text(raw)
        return self._check_text(spec, content, at)

    def decode_any(self, spec: Field, raw: object, at: KeyPath) -> object:
        """Return a value of any type as a string."""
        return self._check_text(spec, write_text(raw), at)

    def decode_flag(self, spec: Field, raw: object, at: KeyPath) -> object:
        """Return a boolean."""
        if isinstance(raw, bool):
            return raw
        example = str(raw).lower()
        return self._refuse(spec, raw, at, example if example in {"true", "false"} else "true")

    def decode_number(self, spec: Field, raw: object, at: KeyPath) -> object:
        """Return an integer."""
        if isinstance(raw, int) and not isinstance(raw, bool):
            return raw
        example = raw if isinstance(raw, str) and raw.isdigit() else "1"
        return self._refuse(spec, raw, at, example)

    def decode_texts(self, spec: Field, raw: object, at: KeyPath) -> object:
        """Return a list of strings."""
        if not isinstance(raw, list):
            return self._refuse(spec, raw, at, f'["{raw}"]' if isinstance(raw, str) else "")
        texts = []
        for index, element in enumerate(raw):
            if not _is_flat(element):
                self._refuse(spec, element, (*at, index), "")
                continue
            value = self._check_text(spec, write_text(element), (*at, index))
            if isinstance(value, str):
                texts.append(value)
        return tuple(texts)

    def decode_text_map(self, spec: Field, raw: object, at: KeyPath) -> object:
        """Return a map of strings."""
        if not isinstance(raw, dict):
            return self._refuse(spec, raw, at, "")
        texts: dict[str, str] = {}
        for name, element in raw.items():
            if spec.flatten and isinstance(element, dict):
                inner = self.decode_text_map(spec, element, (*at, name))
                pairs = inner.items() if isinstance(inner, dict) else ()
                texts |= {f"{name}.{key}": value for key, value in pairs}
                continue
            self._check_map_key(spec, name, (*at, name))
            value = self._check_text(spec, write_text(element), (*at, name))
            if isinstance(value, str):
                texts[name] = value
        return texts

    def decode_maps(self, spec: Field, raw: object, at: KeyPath) -> object:
        """Return a map of strings that may be split over several tables; later ones win."""
        if not isinstance(raw, list):
            return self.decode_text_map(spec, raw, at)
        merged: dict[str, str] = {}
        for index, element in enumerate(raw):
            texts = self.decode_text_map(spec, element, (*at, index))
            if isinstance(texts, dict):
                merged |= texts
        return merged

    def decode_flag_map(self, spec: Field, raw: object, at: KeyPath) -> object:
        """Return a map of booleans."""
        if not isinstance(raw, dict):
            return self._refuse(spec, raw, at, "")
        flags = {
            name: self.decode_flag(spec, element, (*at, name)) for name, element in raw.items()
        }
        return {name: element for name, element in flags.items() if element is not INVALID}

    def decode_table(self, spec: Field, raw: object, at: KeyPath) -> object:
        """Return a table."""
        if not isinstance(raw, dict) or spec.model is None:
            return self._refuse(spec, raw, at, f"[{spec.key}]")
        return self.decode(spec.model, raw, at)

    def decode_tables(self, spec: Field, raw: object, at: KeyPath) -> object:
        """Return a list of tables."""
        if not isinstance(raw, list) or spec.model is None:
            return self._refuse(spec, raw, at, f"[[{spec.key}]]")
        tables = [
            self.decode_table(spec, element, (*at, index)) for index, element in enumerate(raw)
        ]
        return tuple(element for element in tables if element is not INVALID)

    def decode_table_map(self, spec: Field, raw: object, at: KeyPath) -> object:
        """Return a map of named tables."""
        if not isinstance(raw, dict):
            return self._refuse(spec, raw, at, f"[{spec.key}.name]")
        tables = {
            name: self.decode_table(spec, element, (*at, name)) for name, element in raw.items()
        }
        return {name: element for name, element in tables.items() if element is not INVALID}

    def _check_text(self, spec: Field, content: str, at: KeyPath) -> object:
        place = self.place(at).value
        if spec.choices and not check_choice(self.report, place, spec, content):
            return INVALID
        content = spec.old_choices.get(content) or spec.other_choices.get(content, content)
        embedded = None
        if not content:
            return content
        if spec.reference:
            embedded = self.references.embed(content, place)
        elif spec.path:
            embedded = self.references.embed_path(content, place)
        if spec.reference or spec.path:
            if embedded is None:
                return INVALID
            self.texts.append(
                Text(at, embedded.content, spec, place, embedded.source, embedded.remote)
            )
            return embedded.content
        if not (spec.templated and "{{" in content):
            self._check_format(spec, content, place)
        self.texts.append(Text(at, content, spec, place))
        return content

    def _check_format(self, spec: Field, content: str, place: Place) -> None:
        check = FORMATS.get(spec.format)
        flaw = check(content) if check and content else None
        if flaw is not None:
            tell = self.report.warn if flaw.warning else self.report.error
            tell(flaw.code, place, f"`{spec.key}`: {flaw.message}", flaw.hint)

    def _check_map_key(self, spec: Field, name: str, at: KeyPath) -> None:
        if "{{" in name:
            message = f"`{name}`: the keys of `{spec.key}` may not be templates"
            self.report.error(Code.BAD_FORMAT, self.place(at), message, "Only values may be.")
        elif spec.format == "pulumi_keys" and ":" not in name:
            message = f"`{name}` has no namespace"
            hint = f'Write "<project or provider>:{name}".'
            self.report.warn(Code.DOUBTFUL_FORMAT, self.place(at), message, hint)

    def _refuse(self, spec: Field, raw: object, at: KeyPath, example: str) -> _Invalid:
        expected = _EXPECTED[spec.shape]
        message = f"`{spec.key}` must be {expected}, and this is {name_type(raw)}"
        hint = f"Write {example}." if example.startswith("[") else f"Write {spec.key} = {example}."
        if not example:
            hint = f"Example: {spec.key} = {spec.example}" if spec.example else spec.doc
        self.report.error(Code.WRONG_TYPE, self.place(at).value, message, hint)
        return INVALID


def _is_flat(value: object) -> bool:
    return not isinstance(value, list | dict)


_SHAPES: Mapping[Shape, Callable[[Decoder, Field, object, KeyPath], object]] = {
    Shape.TEXT: Decoder.decode_text,
    Shape.FLAG: Decoder.decode_flag,
    Shape.NUMBER: Decoder.decode_number,
    Shape.ANY: Decoder.decode_any,
    Shape.TEXTS: Decoder.decode_texts,
    Shape.TEXT_MAP: Decoder.decode_text_map,
    Shape.FLAG_MAP: Decoder.decode_flag_map,
    Shape.MAPS: Decoder.decode_maps,
    Shape.TABLE: Decoder.decode_table,
    Shape.TABLES: Decoder.decode_tables,
    Shape.TABLE_MAP: Decoder.decode_table_map,
}
_EXPECTED: Mapping[Shape, str] = {
    Shape.TEXT: "text",
    Shape.FLAG: "true or false",
    Shape.NUMBER: "a whole number",
    Shape.ANY: "a value",
    Shape.TEXTS: "a list of texts",
    Shape.TEXT_MAP: "a table",
    Shape.FLAG_MAP: "a table of switches",
    Shape.MAPS: "a table, or a list of tables",
    Shape.TABLE: "a table",
    Shape.TABLES: "a list of tables",
    Shape.TABLE_MAP: "a table of tables",
}
