"""Content hashes: what a part is, whatever machine, file name or order it is read from."""

from collections.abc import Mapping

from exclave.appconfig.model.fields import NOTHING, Table
from exclave.appconfig.stored.freezing import freeze
from exclave.base.digests import digest_json


def hash_part(table: Table, folders: Mapping[str, str] = NOTHING) -> str:
    """Name a part by its definition, the content of the files it embeds, and its source folders.

    Only what differs from its default counts, so that a new field of the format leaves the hashes
    of parts that do not use it alone. The order of dependencies does not count. `folders` are the
    digests of the folders of the app directory that it is built from.
    """
    definition = freeze(table)
    if "dependencies" in definition:
        definition["dependencies"] = sorted(set(definition["dependencies"]))
    if folders:
        definition["folders of the app directory"] = dict(folders)
    return digest_json(definition)
