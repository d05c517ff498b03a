"""Alembic's environment: the caller's connection, one transaction a migration, all of it owned by the owner."""

from __future__ import annotations

from alembic import context
from sqlalchemy import text

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    version_table="alembic_version",
    version_table_schema="grandbo",
    transaction_per_migration=True,
)
connection.execute(text("SET ROLE grandbo_owner"))
connection.execute(text("SET search_path = grandbo, extensions, public"))
connection.commit()
with context.begin_transaction():
    context.run_migrations()
connection.execute(text("RESET ROLE"))
connection.execute(text("RESET search_path"))
connection.commit()
