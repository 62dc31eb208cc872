"""The curator's gate: three tools, and nothing else whatever a model asks for."""

from permissions_app.gate import Gate
from permissions_app.rules.decision import Decision, allow, deny
from permissions_app.rules.ladder import ToolCall
from permissions_app.rules.setting import Setting

SERVER = "curator"
TOOLS = ("update_title", "update_summary", "log_activity")
FULL_NAMES = frozenset(f"mcp__{SERVER}__{tool}" for tool in TOOLS)


class CuratorGate(Gate):
    def decision_on(self, call: ToolCall, setting: Setting) -> Decision:
        if call.name in FULL_NAMES:
            return allow("curator", "This tool is the curator's.")
        return deny("curator", "The curator has its three tools and no other.")
