"""A JSON document with references in it, as one text of references."""

import json
from collections.abc import Iterator, Mapping, Sequence

from exclave.stacks.aws.references import Fact, Joined, Node, Text, is_text


def list_json_texts(node: Node) -> Iterator[Text]:
    """Return the JSON of a document in pieces of text and references.

    What a reference becomes must have no quotes, backslashes or line breaks; what a customer wrote
    is therefore in base64.
    """
    match node:
        case Fact():
            yield from _quote(node)
        case None | bool() | int() | float() | str():
            yield json.dumps(node)
        case Mapping():
            yield "{"
            for index, (name, value) in enumerate(node.items()):
                yield ("," if index else "") + json.dumps(name) + ":"
                yield from list_json_texts(value)
            yield "}"
        case Sequence():
            yield "["
            for index, item in enumerate(node):
                yield "," if index else ""
                yield from list_json_texts(item)
            yield "]"
        case Joined(parts):
            yield from _quote(*(_escape(part) for part in parts))
        case _:
            yield from _quote(node)


def _quote(*texts: Text) -> Iterator[Text]:
    yield '"'
    yield from texts
    yield '"'


def _escape(part: Text) -> Text:
    return json.dumps(part)[1:-1] if is_text(part) else part
