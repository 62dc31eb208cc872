"""JSON from outside. Of a megabyte of `[1,1,1,…]` the checks behind it would make a gigabyte of complaints,
in the loop that serves everybody: how many values there are is looked at first."""

import json
from typing import Any

from django.utils.translation import gettext as _

from sessions_app.errors import Invalid

MOST_COMMAS = 200_000  # a message may be nothing else, twice
MOST_VALUES = 5_000


def read(text: str | bytes) -> Any:
    """Raises Invalid."""
    comma: Any = "," if isinstance(text, str) else b","
    if text.count(comma) > MOST_COMMAS:
        raise _too_many()
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid.field("body", _("It cannot be read as JSON.")) from error
    _check_few(found)
    return found


def _check_few(found: Any) -> None:
    count, unseen = 0, [found]
    while unseen:
        each = unseen.pop()
        if isinstance(each, dict | list):
            count += len(each)
            if count > MOST_VALUES:
                raise _too_many()
            unseen += each.values() if isinstance(each, dict) else each


def _too_many() -> Invalid:
    most = {"most": f"{MOST_VALUES:,}"}
    return Invalid.field("body", _("It holds too many values; at most %(most)s are taken.") % most)
