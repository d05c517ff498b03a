"""The HTTP edge: translates requests into verbs of the library, and answers and errors back."""

from grandbo.http.app import build_app
from grandbo.http.server import serve

__all__ = ["build_app", "serve"]
