"""The PostgreSQL server that Grandbo starts itself when no `GRANDBO_DATABASE_URL` is set (Linux and macOS)."""

from grandbo.storage.embedded.launcher import EmbeddedServer

__all__ = ["EmbeddedServer"]
