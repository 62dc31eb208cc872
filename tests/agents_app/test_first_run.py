"""Of several who come first at once, one is led through the first steps."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User
from django.db import connections

from agents_app.model import first_run

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]

AT_ONCE = 4


def test_of_those_who_come_at_once_one_is_led(ada: User) -> None:
    together = threading.Barrier(AT_ONCE)

    def come(_: int) -> bool:
        try:
            together.wait(10)
            return first_run.is_due(ada)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(AT_ONCE) as threads:
        assert sorted(threads.map(come, range(AT_ONCE))) == [False] * (AT_ONCE - 1) + [True]
    assert not first_run.is_due(ada)
