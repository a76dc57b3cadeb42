"""The whole schema: importing this module makes every table known to the metadata."""

from exclave.storage import tables_apps as tables_apps
from exclave.storage import tables_installs as tables_installs
from exclave.storage import tables_registry as tables_registry
from exclave.storage import tables_stacks as tables_stacks
from exclave.storage import tables_terraform as tables_terraform
from exclave.storage import tables_usage as tables_usage
from exclave.storage.tables import INSTANCE_TABLES as INSTANCE_TABLES
from exclave.storage.tables import metadata as metadata
