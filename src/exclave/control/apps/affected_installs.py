"""Which installs would see a change if they were moved to a version of their app."""

from collections.abc import Sequence
from dataclasses import dataclass

from exclave.control.apps.config_diff import find_changed
from exclave.domain.configs import Part
from exclave.domain.identity import OrgId
from exclave.storage import apps, configs
from exclave.storage.engine.database import Tx
from exclave.wire.apps import InstallImpact

_SHOWN = 100
"""So many installs are listed; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Impact:
    """The installs, and how many more there are."""

    installs: list[InstallImpact]
    more: int


def find_impact(tx: Tx, org: OrgId, app_id: str, parts: Sequence[Part]) -> Impact:
    """Compare what each install runs with the parts of a version.

    An install that runs the same content under another number would see nothing.
    """
    versions: dict[str, int] = {}
    changes: dict[str, list[str]] = {}
    same: list[str] = []
    for row in apps.list_used_configs(tx, org, app_id):
        keys = find_changed(configs.list_part_hashes(tx, org, row.id), parts)
        if keys:
            versions[row.id], changes[row.id] = row.version, list(keys)
        else:
            same.append(row.id)
    rows = apps.list_installs_beside(tx, org, app_id, same, _SHOWN)
    total = apps.count_installs_beside(tx, org, app_id, same) if len(rows) == _SHOWN else len(rows)
    shown = [
        InstallImpact(
            id=row.id, name=row.name, version=versions[row.config_id], parts=changes[row.config_id]
        )
        for row in rows
    ]
    return Impact(shown, total - len(shown))
