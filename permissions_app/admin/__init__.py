"""The console's part about permissions. Each noun has a file, which Django finds through this one."""

from permissions_app.admin import audit, grants, requests

__all__ = ["audit", "grants", "requests"]
