"""Check that a text is YAML."""

import yaml

_LOADER: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MOST_EVENTS = 100_000
_DEEPEST = 100


def find_yaml_flaw(text: str) -> str:
    """Return why a text is not YAML, and where; empty if it is.

    Only events are read and nothing is built from them: an alias stays a name, so no text can grow.
    """
    anchors: set[str] = set()
    depth = 0
    try:
        for count, event in enumerate(yaml.parse(text, Loader=_LOADER)):
            anchor = getattr(event, "anchor", None)
            if isinstance(event, yaml.AliasEvent) and anchor not in anchors:
                return f"not YAML: an alias has no anchor before it{_describe_position(event)}"
            if anchor:
                anchors.add(anchor)
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            if depth > _DEEPEST or count > _MOST_EVENTS:
                return f"nested too deeply or too long{_describe_position(event)}"
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = "" if mark is None else f" at line {mark.line + 1}, column {mark.column + 1}"
        return f"not YAML: {error.problem or 'it cannot be read'}{where}"
    except (yaml.YAMLError, UnicodeError):
        return "not YAML: it has a character that YAML does not know"
    return ""


def _describe_position(event: yaml.Event) -> str:
    mark = event.start_mark
    return "" if mark is None else f" at line {mark.line + 1}, column {mark.column + 1}"
