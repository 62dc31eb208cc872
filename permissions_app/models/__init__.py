from permissions_app.models.requests import RequestKind, RequestStatus, ToolRequest

__all__ = ["RequestKind", "RequestStatus", "ToolRequest"]
