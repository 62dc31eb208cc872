"""Tries at passwords, many at once."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from sessions_app.access.services import Limit, give_back, take_try

pytestmark = [pytest.mark.database, pytest.mark.django_db]


@pytest.mark.django_db(transaction=True)
def test_many_at_once_get_no_try_more() -> None:
    def take(_: int) -> bool:
        try:
            return take_try(Limit.NAME, "ada") is None
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(take, range(25))) == 10


def test_no_more_tries_come_back_than_were_taken() -> None:
    take_try(Limit.ADDRESS, "192.0.2.1")
    for _ in range(2):
        give_back(Limit.ADDRESS, "192.0.2.1")
    taken = [take_try(Limit.ADDRESS, "192.0.2.1") for _ in range(31)]
    assert [until is None for until in taken] == [True] * 30 + [False]
