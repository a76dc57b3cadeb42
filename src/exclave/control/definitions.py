"""Read the parts of a config version as their typed definitions, with all defaults."""

from typing import TypeVar

from exclave.appconfig.model.fields import Table
from exclave.appconfig.stored.definitions import name_section, read_definition
from exclave.domain.identity import OrgId
from exclave.storage import configs
from exclave.storage.engine.database import Tx

T = TypeVar("T", bound=Table)


def find_definition(tx: Tx, org: OrgId, config_id: str, model: type[T], name: str = "") -> T | None:
    """Find the definition of one part; those of which there is only one have no name."""
    row = configs.find_part(tx, org, config_id, name_section(model), name)
    return None if row is None else read_definition(model, row.value)


def list_definitions(tx: Tx, org: OrgId, config_id: str, model: type[T]) -> dict[str, T]:
    """Return the definitions of one section by the names of their parts, in the app's order."""
    rows = configs.list_parts(tx, org, config_id, name_section(model))
    return {row.name: read_definition(model, row.value) for row in rows}
