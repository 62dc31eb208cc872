from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import AwareDatetime, Field

from sessions_app.access.models import ApiKey, KeyScope, Role, TrustLevel, Workspace
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


class WorkspaceOut(Wire):
    slug: str = Field(examples=["default"])
    name: str = Field(examples=["My notes"])
    role: Role | None = Field(description="Of whoever asks")
    vault_path: str = Field(examples=["/home/ada/Notes"])
    default_agent: str = Field(examples=["default"])
    default_model: str = Field(description="Empty: the first that is allowed here", examples=["sonnet"])
    default_trust: TrustLevel
    trust_floor: TrustLevel = Field(description="The most that a chat may reach here")
    time_zone: str = Field(description="Empty: the machine's", examples=["Europe/Berlin"])
    agents: list[str] | None = Field(description="Those that it offers; null: all", examples=[["gardener"]])
    writes_copies: bool = Field(description="Readable copies of its sessions, in the vault")
    curates: bool = Field(description="Titles, summaries and the log of the day")
    archived_at: datetime | None
    created_at: datetime

    @classmethod
    def of(cls, workspace: Workspace, role: str | None) -> Self:
        own = {name: getattr(workspace, name) for name in cls.model_fields if name != "role"}
        return cls(**own, role=Role(role) if role else None)


class WorkspaceList(Wire):
    workspaces: list[WorkspaceOut]


class WorkspaceChange(Order):
    """Only what is given changes."""

    name: Text | None = Field(None, examples=["My notes"])
    vault_path: Text | None = Field(None, description="By an operator", examples=["/home/ada/Notes"])
    default_agent: Annotated[Text, Field(max_length=100)] | None = None
    default_model: Annotated[Text, Field(max_length=100)] | None = None
    default_trust: TrustLevel | None = None
    trust_floor: TrustLevel | None = None
    time_zone: Annotated[Text, Field(max_length=64)] | None = Field(None, examples=["Europe/Berlin"])
    agents: list[Text] | None = Field(None, description="Null: all", examples=[["gardener"]])
    writes_copies: bool | None = None
    curates: bool | None = None
    archived: bool | None = None

    def columns(self) -> dict[str, Any]:
        given = self.model_dump(exclude_unset=True, exclude={"slug", "archived"})
        return {name: value for name, value in given.items() if value is not None or name == "agents"}


class WorkspaceOrder(WorkspaceChange):
    slug: Text = Field(description="Small letters, digits and dashes", examples=["notes"])
    name: Text = Field(examples=["My notes"])
    vault_path: Text = Field(description="A folder of its own", examples=["/home/ada/Notes"])


class MemberOut(Wire):
    user: str = Field(examples=["ben"])
    role: Role
    is_active: bool


class MemberList(Wire):
    members: list[MemberOut]


class RoleOrder(Order):
    role: Role


class MemberOrder(RoleOrder):
    user: Text = Field(description="The name of somebody who is here already", examples=["ben"])
