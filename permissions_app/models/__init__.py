from permissions_app.models.audit import AuditChain, AuditKind, AuditRow, AuditSeal, Outcome
from permissions_app.models.grants import (
    GrantRequest,
    GrantRequestStatus,
    GrantScope,
    GrantType,
    PermissionGrant,
)
from permissions_app.models.requests import RequestKind, RequestStatus, ToolRequest

__all__ = [
    "AuditChain",
    "AuditKind",
    "AuditRow",
    "AuditSeal",
    "GrantRequest",
    "GrantRequestStatus",
    "GrantScope",
    "GrantType",
    "Outcome",
    "PermissionGrant",
    "RequestKind",
    "RequestStatus",
    "ToolRequest",
]
