from permissions_app.models.audit import AuditChain, AuditKind, AuditRow, AuditSeal, Outcome
from permissions_app.models.grants import GrantRequest, GrantScope, GrantType, PermissionGrant, RequestStatus

__all__ = [
    "AuditChain",
    "AuditKind",
    "AuditRow",
    "AuditSeal",
    "GrantRequest",
    "GrantScope",
    "GrantType",
    "Outcome",
    "PermissionGrant",
    "RequestStatus",
]
