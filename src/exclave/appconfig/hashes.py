"""Content hashes: what a component is, whatever machine, file name or order it is read from."""

from collections.abc import Mapping

from exclave.appconfig.fields import Table
from exclave.appconfig.kinds.components import Component
from exclave.base.digests import digest_json


def hash_component(component: Component) -> str:
    """Name a component by its definition and the content of the files it embeds.

    Only what differs from its default counts, so that a new field of the format leaves the hashes
    of components that do not use it alone. The order of dependencies does not count.
    """
    definition = _plain(component)
    if isinstance(definition, dict) and "dependencies" in definition:
        definition["dependencies"] = sorted(set(component.dependencies))
    return digest_json(definition)


def _plain(value: object) -> object:
    match value:
        case Table():
            return {
                key: _plain(getattr(value, field.attribute))
                for key, field in value.FIELDS.items()
                if getattr(value, field.attribute) != field.default
            }
        case Mapping():
            return {name: _plain(each) for name, each in value.items()}
        case tuple():
            return [_plain(each) for each in value]
        case _:
            return value
