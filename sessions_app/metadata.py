"""What a client keeps with a session. The server keeps something there too: that is its own."""

import json
from typing import Any

from django.utils.translation import gettext as _

from sessions_app.errors import Invalid
from sessions_app.storable import storable

Metadata = dict[str, Any]

PERMISSIONS = "permissions"
UNWALLED = "acts_without_a_wall"  # an operator let it act without asking where no wall stands
SUMMARY_SOURCE = "summary_source"  # whose the summary is, as `title_source` is whose the title is
OURS = frozenset({PERMISSIONS, UNWALLED, SUMMARY_SOURCE, "curator_last_run", "curator_session_id"})
LARGEST = 16_000  # characters as JSON: it goes with every page of a list
WORDS = 4  # characters by which it may grow as it becomes less: "false" is longer than "true"


def merged(held: Metadata, given: Metadata) -> Metadata:
    """Key by key: null takes one out, ours are left as they are, and `permissions` become less at most."""
    fresh = {**held, **{key: value for key, value in given.items() if key not in OURS}}
    fresh = {key: value for key, value in fresh.items() if value is not None or key in OURS}
    if PERMISSIONS in given:
        fresh[PERMISSIONS] = narrowed(held[PERMISSIONS], given[PERMISSIONS])
    check(fresh, held)
    return fresh


def narrowed(held: Metadata, wanted: Metadata) -> Metadata:
    """What is wanted beyond what is held is left out, and no error: a client may send back what it read."""
    return {name: _less(now, wanted.get(name, True)) for name, now in held.items()}


def _less(held: Any, wanted: Any) -> Any:
    """Each is all (True), nothing (False), or what a list names."""
    if wanted is True or held is False:
        return held
    if wanted is False or held is True:
        return wanted
    return [each for each in held if each in wanted]


def check(metadata: Metadata, held: Metadata) -> None:
    """What has become less is always taken: somebody takes rights away."""
    try:
        is_good = storable(metadata) == metadata
        length = len(json.dumps(metadata, allow_nan=False))
    except (ValueError, RecursionError) as error:
        raise Invalid.field("metadata", _("It holds what JSON has no word for.")) from error
    if not is_good:
        raise Invalid.field("metadata", _("It holds a character that is no text (NUL or half of a pair)."))
    if length > max(LARGEST, len(json.dumps(held)) + WORDS):
        raise Invalid.field(
            "metadata",
            _("It has %(length)s characters as JSON; %(most)s are kept.")
            % {"length": f"{length:,}", "most": f"{LARGEST:,}"},
        )
