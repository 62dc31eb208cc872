from datetime import datetime
from typing import Annotated, Self

from pydantic import AwareDatetime, Field

from sessions_app.access.models import ApiKey, KeyScope
from sessions_app.access.services import NewKey
from sessions_app.schemas import Order, Text, Wire


class KeyOrder(Order):
    name: Annotated[Text, Field(description="What the key is for", examples=["backup script"])]
    scopes: list[KeyScope] = Field(
        [KeyScope.READ, KeyScope.CHAT],
        description="`read`: every GET; `chat`: what people do in sessions; `admin`: keys and members",
        examples=[["read", "chat"]],
    )
    workspaces: list[Text] | None = Field(
        None, description="Slugs; all of yours, now and later, where there are none", examples=[["default"]]
    )
    expires_at: AwareDatetime | None = Field(
        None, description="With its time zone; never, if none", examples=["2027-06-30T00:00:00Z"]
    )

    def as_wanted(self) -> NewKey:
        return NewKey(
            name=self.name,
            scopes=tuple(self.scopes),
            workspaces=None if self.workspaces is None else tuple(self.workspaces),
            expires_at=self.expires_at,
        )


class KeyMade(Wire):
    id: int = Field(examples=[7])
    key: str = Field(description="Shown this once", examples=["para_3vN0…"])


class KeyOut(Wire):
    id: int = Field(examples=[7])
    name: str = Field(examples=["backup script"])
    scopes: list[KeyScope] = Field(examples=[["read", "chat"]])
    workspaces: list[str] | None = Field(
        description="Slugs; null: all of its owner's", examples=[["default"]]
    )
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None = Field(description="To the minute")

    @classmethod
    def of(cls, key: ApiKey) -> Self:
        slugs = sorted(workspace.slug for workspace in key.workspaces.all())
        return cls(
            id=key.pk,
            name=key.name,
            scopes=[KeyScope(scope) for scope in key.scopes],
            workspaces=slugs if key.is_limited else None,
            created_at=key.created_at,
            expires_at=key.expires_at,
            last_used_at=key.last_used_at,
        )


class KeyList(Wire):
    keys: list[KeyOut]
