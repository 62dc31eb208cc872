"""Why an agent may not do what it asks of another: each has its code of the wire.

ParachuteError
├── AgentNotPermitted, DepthExceeded, KindNotSpawnable, Cycle, WorkspaceMismatch, NotYourChild   403
├── TooManyChildren, BudgetExceeded                                                              429
└── (of all) Invalid, ModelNotAllowed, SessionNotRunning, RateLimited
"""

from sessions_app.errors import ParachuteError


class AgentNotPermitted(ParachuteError):
    code, status = "agent_not_permitted", 403


class WorkspaceMismatch(ParachuteError):
    code, status = "workspace_mismatch", 403


class DepthExceeded(ParachuteError):
    code, status = "depth_exceeded", 403


class KindNotSpawnable(ParachuteError):
    code, status = "kind_not_spawnable", 403


class Cycle(ParachuteError):
    code, status = "cycle", 403


class NotYourChild(ParachuteError):
    code, status = "not_your_child", 403


class TooManyChildren(ParachuteError):
    code, status = "too_many_children", 429


class BudgetExceeded(ParachuteError):
    code, status = "budget_exceeded", 429
