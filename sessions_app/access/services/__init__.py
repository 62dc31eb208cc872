"""The only writers of workspaces, members, keys, passwords and sign-in links."""

from sessions_app.access.services.callers import caller_of_key, caller_of_user, shown_name
from sessions_app.access.services.first import choose_vault, first_admin, first_vault, first_workspace
from sessions_app.access.services.keys import NewKey, create_key, make_key, revoke_key, revoke_keys
from sessions_app.access.services.links import link_is_good, make_sign_in_link, use_sign_in_link
from sessions_app.access.services.members import add_member, change_role, invite, remove_member
from sessions_app.access.services.passwords import set_password
from sessions_app.access.services.tries import Limit, give_back, take_try
from sessions_app.access.services.workspaces import (
    archive_workspace,
    change_workspace,
    checked_vault,
    create_workspace,
    remove_workspace,
)

__all__ = [
    "Limit",
    "NewKey",
    "add_member",
    "archive_workspace",
    "caller_of_key",
    "caller_of_user",
    "change_role",
    "change_workspace",
    "checked_vault",
    "choose_vault",
    "create_key",
    "create_workspace",
    "first_admin",
    "first_vault",
    "first_workspace",
    "give_back",
    "invite",
    "link_is_good",
    "make_key",
    "make_sign_in_link",
    "remove_member",
    "remove_workspace",
    "revoke_key",
    "revoke_keys",
    "set_password",
    "shown_name",
    "take_try",
    "use_sign_in_link",
]
