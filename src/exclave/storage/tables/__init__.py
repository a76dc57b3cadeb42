"""Table definitions by noun; importing this package makes every table known to the metadata."""

from exclave.storage.tables import apps as apps
from exclave.storage.tables import attest as attest
from exclave.storage.tables import identity as identity
from exclave.storage.tables import installs as installs
from exclave.storage.tables import registry as registry
from exclave.storage.tables import runners as runners
from exclave.storage.tables import stacks as stacks
from exclave.storage.tables import terraform as terraform
from exclave.storage.tables import usage as usage
from exclave.storage.tables import work as work
from exclave.storage.tables.schema import INSTANCE_TABLES as INSTANCE_TABLES
from exclave.storage.tables.schema import metadata as metadata
