from dataclasses import dataclass, field

from django.db.models import Q

from sessions_app.access.models import KeyScope, Role

EVERYTHING = frozenset(KeyScope.values)
MAY_WRITE = (Role.OWNER, Role.MEMBER)


@dataclass(frozen=True)
class Caller:
    """Who is calling: a person in a browser, or a program with a key of theirs.

    `workspace_ids` is None where all workspaces of the user are meant. `name` is what an idempotency key
    and an audit row remember: the same person through two keys is two callers. `username` is what others
    read of who said something.
    """

    user_id: int
    name: str
    is_operator: bool = False
    scopes: frozenset[str] = field(default=EVERYTHING)
    workspace_ids: frozenset[int] | None = None
    key_id: int | None = None
    username: str = ""

    @property
    def source(self) -> str:
        return "user" if self.key_id is None else "api"

    def may(self, scope: KeyScope) -> bool:
        return scope in self.scopes

    def within(self, through: str = "", roles: tuple[Role, ...] = ()) -> Q:
        """The condition that a row is in a workspace of this caller. `through` is the path to it."""
        prefix = f"{through}__" if through else ""
        reached = {f"{prefix}memberships__user_id": self.user_id}
        if roles:
            reached[f"{prefix}memberships__role__in"] = roles  # type: ignore[assignment]
        condition = Q(**reached)
        if self.workspace_ids is not None:
            condition &= Q(**{f"{through or 'pk'}{'_id' if through else ''}__in": self.workspace_ids})
        return condition
