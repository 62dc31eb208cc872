from datetime import datetime
from typing import Annotated, Self
from uuid import UUID

from pydantic import Field

from permissions_app.grants.services import NewGrant
from permissions_app.models.grants import (
    SLUG,
    GrantRequest,
    GrantRequestStatus,
    GrantScope,
    GrantType,
    PermissionGrant,
)
from sessions_app.schemas import Order, Wire

Slug = Annotated[str, Field(pattern=SLUG, examples=["code-writer"])]


class Details(Order):
    child_agent_id: Slug


class SpawnGrantOrder(Order):
    agent: Slug
    grant_type: GrantType = GrantType.SPAWN
    details: Details
    scope: GrantScope = Field(
        description="`persistent`: every session of the agent; `session`: `sessionId` alone"
    )
    session_id: UUID | None = None

    def as_wanted(self) -> NewGrant:
        return NewGrant(
            agent=self.agent,
            child_agent=self.details.child_agent_id,
            scope=self.scope,
            session_id=self.session_id,
            grant_type=self.grant_type,
        )


class DetailsOut(Wire):
    child_agent_id: str


class GrantOut(Wire):
    id: UUID
    agent: str
    grant_type: GrantType
    details: DetailsOut
    scope: GrantScope
    session_id: UUID | None
    granted_by: str | None = Field(description="Null where they are gone")
    created_at: datetime

    @classmethod
    def of(cls, grant: PermissionGrant) -> Self:
        return cls(
            id=grant.pk,
            agent=grant.agent,
            grant_type=GrantType(grant.grant_type),
            details=DetailsOut(child_agent_id=grant.child_agent),
            scope=GrantScope(grant.scope),
            session_id=grant.session_id,
            granted_by=grant.granted_by.get_username() if grant.granted_by else None,
            created_at=grant.created_at,
        )


class GrantList(Wire):
    grants: list[GrantOut]


class Approval(Order):
    scope: GrantScope


class RequestOut(Wire):
    id: UUID
    agent: str
    grant_type: GrantType
    details: DetailsOut
    reason: str
    session_id: UUID
    status: GrantRequestStatus
    created_at: datetime
    decided_at: datetime | None
    decided_by: str | None

    @classmethod
    def of(cls, asked: GrantRequest) -> Self:
        return cls(
            id=asked.pk,
            agent=asked.agent,
            grant_type=GrantType(asked.grant_type),
            details=DetailsOut(child_agent_id=asked.child_agent),
            reason=asked.reason,
            session_id=asked.session_id,
            status=GrantRequestStatus(asked.status),
            created_at=asked.created_at,
            decided_at=asked.decided_at,
            decided_by=asked.decided_by.get_username() if asked.decided_by else None,
        )


class RequestList(Wire):
    requests: list[RequestOut]
