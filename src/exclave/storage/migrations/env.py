"""Alembic's entry: runs migrations on the connection that `migrate.upgrade` opened."""

from alembic import context

from exclave.storage.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
