"""With what somebody is let in, as a form."""

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents_app.definitions.agents import offered
from bots_app.models import BotUser
from bots_app.services import pairing
from bots_app.services.pairing import Approval
from parachute_site.pages.reach import NAMES
from sessions_app.access.models import TrustLevel, Workspace
from sessions_app.models import SessionKind

LEVELS = [(level.value, NAMES[level]) for level in (TrustLevel.SANDBOXED, TrustLevel.VAULT)]
LASTS = [
    ("0", gettext_lazy("until somebody puts them out")),
    ("1", gettext_lazy("a day")),
    ("7", gettext_lazy("7 days")),
    ("30", gettext_lazy("30 days")),
    ("365", gettext_lazy("a year")),
]


class GivenForm(forms.Form):
    """With what somebody is let in."""

    trust_level = forms.ChoiceField(label=gettext_lazy("Reaches"), choices=LEVELS)
    agent = forms.ChoiceField(
        label=gettext_lazy("Who answers"),
        required=False,
        help_text=gettext_lazy("One that you choose here answers them, and no other."),
    )
    lasts = forms.ChoiceField(label=gettext_lazy("How long"), choices=LASTS)
    messages_per_day = forms.IntegerField(
        label=gettext_lazy("Messages a day"),
        required=False,
        min_value=1,
        max_value=100_000,
        help_text=gettext_lazy("Empty: as many as they like, ten a minute."),
    )

    def __init__(self, *args: Any, own: list[Workspace], held: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": "", "auto_id": "approve_%s", **kwargs})
        slugs = dict.fromkeys(
            agent.slug
            for each in own
            for agent in offered(each)
            if agent.rights.kind != SessionKind.ORCHESTRATOR
        )
        slugs |= {held: None} if held else {}  # its file may be away
        self.fields["agent"].choices = [  # type: ignore[attr-defined]
            ("", _("The workspace's, or one they choose")),
            *((slug, slug) for slug in slugs),
        ]


class ApproveForm(GivenForm):
    workspace = forms.ChoiceField(label=gettext_lazy("Into the workspace"))
    seen = forms.IntegerField(widget=forms.HiddenInput, min_value=1, max_value=pairing.KEPT)
    field_order = ("workspace",)

    def __init__(self, *args: Any, own: list[Workspace], **kwargs: Any) -> None:
        super().__init__(*args, own=own, **kwargs)
        self.fields["workspace"].choices = [(each.slug, each.name or each.slug) for each in own]  # type: ignore[attr-defined]

    def approval(self) -> Approval:
        given = self.cleaned_data
        return Approval(
            trust_level=given["trust_level"],
            workspace=given["workspace"],
            agent=given["agent"],
            expires_at=_until(given["lasts"]),
            messages_per_day=given["messages_per_day"],
            seen=given["seen"],
        )


class ChangeForm(GivenForm):
    """Of somebody who is let in already."""

    def __init__(self, *args: Any, user: BotUser, **kwargs: Any) -> None:
        given = {name: getattr(user, name) for name in ("trust_level", "agent", "messages_per_day")}
        super().__init__(*args, own=[user.workspace], held=user.agent, initial=given, **kwargs)
        self.fields["lasts"].choices = [("", _("as it is now")), *LASTS]  # type: ignore[attr-defined]
        self.fields["lasts"].required = False

    def wanted(self) -> dict[str, Any]:
        given = {name: self.cleaned_data[name] for name in ("trust_level", "agent", "messages_per_day")}
        lasts = self.cleaned_data["lasts"]
        return {**given, "expires_at": _until(lasts)} if lasts else given


def _until(lasts: str) -> datetime | None:
    days = int(lasts)
    return timezone.now() + timedelta(days=days) if days else None
