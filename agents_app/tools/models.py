from agents_app.tools.mcp.models import KnownServer, SessionServer, WorkspaceSecret
from agents_app.tools.skills.models import EnabledSkill

__all__ = ["EnabledSkill", "KnownServer", "SessionServer", "WorkspaceSecret"]
