"""Write YAML that Kubernetes, Helm and people read the same way."""

from collections.abc import Iterable, Mapping, Sequence

import yaml

from exclave.base.json_values import Json
from exclave.runner.kube.api.yaml_scalars import resolve_plain


class _Dumper(yaml.SafeDumper):
    """Quotes every text that Go or PyYAML would read as something else."""

    def ignore_aliases(self, data: object) -> bool:
        """Return True: what is used twice is written twice."""
        del data
        return True


def write_documents(documents: Iterable[Json]) -> str:
    """Return a text with one document per value; keys keep their order."""
    return yaml.dump_all(
        [_copy(document) for document in documents],
        Dumper=_Dumper,
        default_flow_style=False,
        sort_keys=False,
        allow_unicode=True,
        explicit_start=True,
        width=1 << 20,
    )


def _copy(value: Json) -> Json:
    """Return a value made of dictionaries and lists, which are what the library can write."""
    match value:
        case str():
            return value
        case Mapping():
            return {key: _copy(part) for key, part in value.items()}
        case Sequence():
            return [_copy(part) for part in value]
        case _:
            return value


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    if "\n" in text and _is_block(text):
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|")
    style = None if text.isprintable() and _stays_text(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _is_block(text: str) -> bool:
    """Return whether a text survives as a block: no trailing blanks, no odd characters."""
    lines = text.split("\n")
    return (
        all(line == line.rstrip() and line.isprintable() for line in lines)
        and not lines[0].startswith(" ")
        and bool(lines[0])
    )


def _stays_text(text: str) -> bool:
    try:
        return isinstance(resolve_plain(text), str)
    except ValueError:
        return False


_Dumper.add_representer(str, _represent_text)
