from sessions_app.access.models import (
    ApiKey,
    KeyScope,
    Membership,
    Role,
    SignInLink,
    SignInTries,
    TrustLevel,
    Workspace,
)
from sessions_app.models.attachment import Attachment, ContentType
from sessions_app.models.copy import SessionCopy
from sessions_app.models.event import EventType, SessionEvent
from sessions_app.models.labels import SessionContext, SessionTag
from sessions_app.models.session import Session, SessionKind, SessionStatus, Source, TitleSource
from sessions_app.models.turn import Message, Receipt, Recovery, Speaker, Turn, TurnStatus
from sessions_app.search.models import Chunk, IndexManifest

__all__ = [
    "ApiKey",
    "Attachment",
    "Chunk",
    "ContentType",
    "EventType",
    "IndexManifest",
    "KeyScope",
    "Membership",
    "Message",
    "Receipt",
    "Recovery",
    "Role",
    "Session",
    "SessionContext",
    "SessionCopy",
    "SessionEvent",
    "SessionKind",
    "SessionStatus",
    "SessionTag",
    "SignInLink",
    "SignInTries",
    "Source",
    "Speaker",
    "TitleSource",
    "TrustLevel",
    "Turn",
    "TurnStatus",
    "Workspace",
]
