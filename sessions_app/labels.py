"""Tags of sessions: in lower case, each once."""

from uuid import UUID

from django.db import transaction
from django.db.models import Count
from django.utils.translation import gettext as _

from sessions_app import services
from sessions_app.access.caller import Caller
from sessions_app.errors import Invalid, NotFound
from sessions_app.models import EventType, Session, SessionTag
from sessions_app.models.labels import LONGEST_TAG
from sessions_app.reading import visible
from sessions_app.storable import seen, storable
from sessions_app.streaming.log import record

MOST_TAGS = 50  # of a session


def tags_of(caller: Caller, session_id: UUID) -> list[str]:
    return _tags(visible(caller, session_id).pk)


@transaction.atomic
def add_tag(caller: Caller, session_id: UUID, tag: str) -> list[str]:
    session = services.locked(caller, session_id)
    return put_tag(session, tag)


@transaction.atomic
def remove_tag(caller: Caller, session_id: UUID, tag: str) -> list[str]:
    session = services.locked(caller, session_id)
    return take_tag(session, tag)


def put_tag(session: Session, tag: str) -> list[str]:
    """Of a session that is `locked`. What it has already it keeps."""
    name = _normal(tag)
    if len(_tags(session.pk)) >= MOST_TAGS:
        raise Invalid.field("tag", _("A chat has at most %(most)s tags.") % {"most": MOST_TAGS})
    _made, is_new = SessionTag.objects.get_or_create(session=session, tag=name)
    return _told(session) if is_new else _tags(session.pk)


def take_tag(session: Session, tag: str) -> list[str]:
    gone, _by_model = SessionTag.objects.filter(session=session, tag=_normal(tag)).delete()
    if not gone:
        raise NotFound(_("It has no such tag."))
    return _told(session)


def tags_with_counts(caller: Caller) -> list[dict[str, object]]:
    """Of the sessions that the caller may see, the most used first."""
    tagged = SessionTag.objects.filter(session__in=Session.objects.visible_to(caller))
    counted = tagged.values("tag").annotate(count=Count("pk")).order_by("-count", "tag")
    return [{"tag": each["tag"], "count": each["count"]} for each in counted]


def _told(session: Session) -> list[str]:
    tags = _tags(session.pk)
    record(session.pk, EventType.SESSION_UPDATED, {"tags": tags})
    return tags


def _tags(session_id: UUID) -> list[str]:
    return list(SessionTag.objects.filter(session=session_id).values_list("tag", flat=True))


def _normal(tag: str) -> str:
    name = " ".join(seen(storable(tag)).lower().split())
    # Of the address of a tag, one of dots is a way out; clients follow it before they ask.
    if not 1 <= len(name) <= LONGEST_TAG or "/" in name or name in (".", ".."):
        raise Invalid.field(
            "tag",
            _("Give a tag of 1 to %(most)s characters, without a slash and not of dots alone.")
            % {"most": LONGEST_TAG},
        )
    return name
