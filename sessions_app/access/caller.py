from dataclasses import dataclass, field

from django.db.models import Q

from sessions_app.access.models import KeyScope, Role

EVERYTHING = frozenset(KeyScope.values)
MAY_WRITE = (Role.OWNER, Role.MEMBER)
NOBODY = 0  # the id of a user that nobody has


@dataclass(frozen=True)
class OnPhone:
    """Somebody whom a bot was told to let in: where they speak, and what they may have there at most."""

    platform: str  # the source of their sessions
    chat: str
    chat_type: str
    workspace_id: int
    trust: str
    is_private: bool = False  # their own chat, and they are a user here


@dataclass(frozen=True)
class Caller:
    """Who is calling: a person in a browser, or a program with a key of theirs.

    `workspace_ids` is None where all workspaces of the user are meant. `name` is what an idempotency key
    and an audit row remember: the same person through two keys is two callers. `username` is what others
    read of who said something. Who is `on_phone` reaches the sessions of that one chat and nothing else, with
    the rights of a member; `user_id` is NOBODY for those who have no account here.
    """

    user_id: int
    name: str
    is_operator: bool = False
    scopes: frozenset[str] = field(default=EVERYTHING)
    workspace_ids: frozenset[int] | None = None
    key_id: int | None = None
    username: str = ""
    on_phone: OnPhone | None = None

    @property
    def source(self) -> str:
        if self.on_phone is not None:
            return "bot"
        return "user" if self.key_id is None else "api"

    @property
    def account_id(self) -> int | None:
        """As the author of what they say, where they have an account."""
        return self.user_id or None

    def may(self, scope: KeyScope) -> bool:
        return scope in self.scopes

    def within(self, through: str = "", roles: tuple[Role, ...] = ()) -> Q:
        """The condition that a row is in a workspace of this caller. `through` is the path to it."""
        own = f"{through}_id" if through else "pk"
        if self.on_phone is not None:
            may = not roles or Role.MEMBER in roles
            return Q(**{own: self.on_phone.workspace_id}) if may else Q(**{f"{own}__in": ()})
        prefix = f"{through}__" if through else ""
        reached = {f"{prefix}memberships__user_id": self.user_id}
        if roles:
            reached[f"{prefix}memberships__role__in"] = roles  # type: ignore[assignment]
        condition = Q(**reached)
        if self.workspace_ids is not None:
            condition &= Q(**{f"{own}__in": self.workspace_ids})
        return condition
