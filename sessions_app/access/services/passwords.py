from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from sessions_app.access.models import SignInLink
from sessions_app.errors import Conflict


@transaction.atomic
def set_password(user: User, new: str) -> None:
    """Ends every login of theirs, as Django keeps a hash of the password in each, and every unused link.

    Of two changes at once the first wins: the other was allowed by a password that is none any more. Keys
    stay; they are revoked one by one.
    """
    hashed = make_password(new)
    if not User.objects.filter(pk=user.pk, password=user.password).update(password=hashed):
        raise Conflict(_("The password was changed in another window meanwhile. Nothing was done here."))
    user.password = hashed
    SignInLink.objects.filter(user=user, used_at=None).update(used_at=timezone.now())
