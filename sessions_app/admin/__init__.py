"""The console of operators."""

from sessions_app.admin import access, sessions

__all__ = ["access", "sessions"]
