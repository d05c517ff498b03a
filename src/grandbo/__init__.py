"""Grandbo: an organisation's memory of its incidents."""

__version__ = "0.1.0"
