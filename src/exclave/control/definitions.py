"""Read the parts of a config version as their typed definitions, with all defaults."""

from typing import TypeVar

from exclave.appconfig.model.fields import Table, evolve
from exclave.appconfig.model.kinds.policies import Policy
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


def list_policies(tx: Tx, org: OrgId, config_id: str) -> list[Policy]:
    """Return all policies of a config version; each has a name."""
    policies = list_definitions(tx, org, config_id, Policy)
    return [evolve(policy, name=policy.name or name) for name, policy in policies.items()]
