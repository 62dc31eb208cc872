"""Floors combine, and nobody widens what another has narrowed."""

from itertools import product

import pytest

from agents_app.rights.trust import is_above, narrowest
from sessions_app.access.models import TrustLevel

LEVELS = [*TrustLevel.values, None]


def test_what_is_allowed_together_is_above_nobodys_own() -> None:
    for said in product(LEVELS, repeat=4):
        together = narrowest(*said)
        assert not [level for level in said if level is not None and is_above(together, level)], said
        assert together in (*said, TrustLevel.FULL), said


def test_where_nobody_has_a_say_nothing_is_narrowed() -> None:
    assert narrowest() == narrowest(None) == TrustLevel.FULL


def test_an_unknown_word_is_no_say() -> None:
    with pytest.raises(ValueError, match="root"):
        narrowest("vault", "root")
