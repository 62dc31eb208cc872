from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents_app.model import chosen
from agents_app.models import ModelAccess
from sessions_app.access.models import KeyScope, Role, TrustLevel, Workspace
from sessions_app.access.services import NewKey

FOR_EVER = "0"
LASTS = [
    ("7", _("7 days")),
    ("30", _("30 days")),
    ("90", _("90 days")),
    ("365", _("a year")),
    (FOR_EVER, _("until it is revoked")),
]
SCOPES = [
    (KeyScope.READ, _("Read: see sessions and what was said in them")),
    (KeyScope.CHAT, _("Chat: speak to agents and decide what they may do")),
    (KeyScope.ADMIN, _("Admin: change keys, members and the rest of the console")),
]


class KeyForm(forms.Form):
    name = forms.CharField(label=_("What it is for"), max_length=100)
    scopes = forms.TypedMultipleChoiceField(
        label=_("What it may do"),
        choices=SCOPES,
        coerce=KeyScope,
        initial=[KeyScope.READ, KeyScope.CHAT],
        widget=forms.CheckboxSelectMultiple,
    )
    workspaces = forms.MultipleChoiceField(
        label=_("Where"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("None chosen: in all of yours, also in those that come later."),
    )
    lasts = forms.ChoiceField(label=_("How long it is good"), choices=LASTS, initial="90")

    def __init__(self, *args: Any, workspaces: list[Workspace], **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": "", "auto_id": "key_%s", **kwargs})
        choices = [(workspace.slug, workspace.name) for workspace in workspaces]
        self.fields["workspaces"].choices = choices  # type: ignore[attr-defined]

    def wanted(self) -> NewKey:
        given = self.cleaned_data
        days = int(given["lasts"])
        return NewKey(
            name=given["name"],
            scopes=tuple(given["scopes"]),
            workspaces=tuple(given["workspaces"]) or None,
            expires_at=timezone.now() + timedelta(days=days) if days else None,
        )


class RoleForm(forms.Form):
    role = forms.TypedChoiceField(choices=Role.choices, coerce=Role)


class MemberForm(RoleForm):
    user = forms.CharField(max_length=150)


def password_form(user: User, data: Any = None) -> SetPasswordForm[User]:
    """With the current password, where there is one."""
    kind = PasswordChangeForm if user.has_usable_password() else SetPasswordForm
    form = kind(user, data, label_suffix="")
    for field in form.fields.values():
        field.widget.attrs.pop("autofocus", None)  # a page of many forms begins at its top
    return form


class ModelForm(forms.Form):
    """What opens the model. It is never filled in: nobody gets a key back that was entered once."""

    key = forms.CharField(
        label=_("Anthropic API key"),
        help_text=_(
            "You make one on console.anthropic.com. Here it is checked, encrypted, and never shown again."
        ),
        max_length=2000,
        widget=forms.PasswordInput({"autocomplete": "off", "spellcheck": "false", "placeholder": "sk-ant-…"}),
    )
    kind = forms.ChoiceField(
        label=_("What it is"),
        required=False,
        choices=[("", _("Its beginning tells")), *ModelAccess.Kind.choices],
    )
    address = forms.CharField(
        label=_("Address of the model"),
        required=False,
        max_length=500,
        widget=forms.TextInput({"placeholder": "api.anthropic.com", "inputmode": "url"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": "", "auto_id": "model_%s", **kwargs})

    @property
    def more_is_open(self) -> bool:
        return any(self.errors.get(name) or self[name].value() for name in ("kind", "address"))

    def wanted(self) -> chosen.Typed:
        given = self.cleaned_data
        return chosen.Typed(given["key"], given["kind"], given["address"])


class VaultForm(forms.Form):
    path = forms.CharField(
        label=_("Another folder"),
        help_text=_("On the computer that Parachute runs on. Agents read it and may write in it."),
        max_length=4000,
        widget=forms.TextInput(
            {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none", "placeholder": "~/Notes"}
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": "", "auto_id": "vault_%s", **kwargs})


class WorkspaceForm(forms.Form):
    """What its owners say of a workspace; of its folder operators alone."""

    name = forms.CharField(label=_("Name"), max_length=200)
    vault_path = forms.CharField(
        label=_("Folder"),
        max_length=4000,
        help_text=_("On the computer that Parachute runs on. No two workspaces share one."),
        widget=forms.TextInput({"spellcheck": "false", "autocapitalize": "none", "placeholder": "~/Notes"}),
    )
    default_agent = forms.ChoiceField(label=_("Who answers in a new chat"), required=False)
    default_model = forms.ChoiceField(label=_("Model"), required=False)
    default_trust = forms.ChoiceField(label=_("A new chat reaches"), choices=TrustLevel.choices)
    trust_floor = forms.ChoiceField(label=_("A chat reaches at most"), choices=TrustLevel.choices)
    time_zone = forms.CharField(
        label=_("Time zone"),
        required=False,
        max_length=64,
        help_text=_("Such as Europe/Berlin. Empty: that of the computer."),
        widget=forms.TextInput({"spellcheck": "false", "autocapitalize": "none"}),
    )
    agents = forms.MultipleChoiceField(
        label=_("Agents that it offers"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("None chosen: all, also those that come later."),
    )
    writes_copies = forms.BooleanField(
        label=_("Readable copies"), required=False, help_text=_("Of its chats, in the folder.")
    )

    curates = forms.BooleanField(
        label=_("Titles and summaries"), required=False, help_text=_("The curator writes them, and the days.")
    )

    def __init__(self, *args: Any, agents: list[tuple[str, str]], is_operator: bool, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": "", "auto_id": "workspace_%s", **kwargs})
        models = [(name, name) for name in settings.PARACHUTE_MODELS]
        known = [*agents, *self._held("default_agent", agents)]
        self.fields["default_agent"].choices = known  # type: ignore[attr-defined]
        self.fields["agents"].choices = known  # type: ignore[attr-defined]
        self.fields["default_model"].choices = [  # type: ignore[attr-defined]
            ("", _("The first that is allowed")),
            *models,
            *self._held("default_model", models),
        ]
        if not is_operator:
            del self.fields["vault_path"]

    def _held(self, name: str, known: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """What it has already, though nobody could choose it now."""
        held = self.initial.get(name) or ""
        return [(held, held)] if held and held not in dict(known) else []

    def wanted(self) -> dict[str, Any]:
        given = dict(self.cleaned_data)
        return {**given, "agents": given["agents"] or None}


class NewWorkspaceForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=200)
    slug = forms.SlugField(
        label=_("Short name"),
        max_length=50,
        help_text=_("In addresses. Small letters, digits and dashes; it stays as it is."),
        widget=forms.TextInput({"spellcheck": "false", "autocapitalize": "none", "placeholder": "garden"}),
    )
    vault_path = forms.CharField(
        label=_("Folder"),
        max_length=4000,
        help_text=_("On the computer that Parachute runs on. Agents read it and may write in it."),
        widget=forms.TextInput({"spellcheck": "false", "autocapitalize": "none", "placeholder": "~/Garden"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": "", "auto_id": "workspace_%s", **kwargs})
