from datetime import datetime, timedelta

from django.template import Library
from django.utils import timezone
from django.utils.timesince import timesince
from django.utils.translation import gettext as _

from sessions_app.storable import visible

register = Library()
register.filter("visible", visible)


@register.filter
def ago(at: datetime) -> str:
    if timezone.now() - at < timedelta(minutes=1):
        return _("just now")
    return _("%(time)s ago") % {"time": timesince(at)}
