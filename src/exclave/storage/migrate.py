"""Upgrades a database to the schema of this version."""

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from exclave.base.errors import Unavailable
from exclave.storage.engine.dialects import choose_dialect

_FOLDER = str(Path(__file__).parent / "migrations")
_LOCK = 7_208_114_552
"""Servers that start together take this advisory lock, so that one of them migrates."""


def upgrade(url: str) -> None:
    """Migrate to the newest schema; a database from a newer version is refused."""
    engine = choose_dialect(url).open_writer()
    try:
        with engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SET lock_timeout = '60s'"))
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            upgrade_connection(connection)
            connection.commit()
    finally:
        engine.dispose()


def upgrade_connection(connection: Connection) -> None:
    """Migrate on an open connection; the caller commits."""
    current = MigrationContext.configure(connection).get_current_revision()
    if current == find_newest():
        return  # without the work of reading all migrations
    config = _configure(connection)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if current is not None and current not in known:
        raise Unavailable(
            f"the database has schema `{current}`, which this version does not know",
            hint="Start the version of Exclave that last used this database, or a newer one.",
        )
    command.upgrade(config, "head")


def read_revision(connection: Connection) -> str:
    """Read which schema a database has."""
    return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one())


@cache
def find_newest() -> str:
    """Find the newest schema that this version knows; revisions are numbers of equal length."""
    config = Config()
    config.set_main_option("script_location", _FOLDER)
    return str(ScriptDirectory.from_config(config).get_current_head())


def _configure(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", _FOLDER)
    config.attributes["connection"] = connection
    return config
