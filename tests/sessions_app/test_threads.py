"""The one way from a coroutine into a service."""

import asyncio
from threading import Barrier, current_thread

import pytest
from django.contrib.auth.models import User
from django.db import connection

from sessions_app.threads import THREADS, in_thread

pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("service_threads"),
]


async def test_a_service_answers_and_its_errors_come_through() -> None:
    assert await in_thread(divmod)(7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await in_thread(divmod)(7, 0)


async def test_services_run_beside_each_other_in_a_bounded_number_of_threads() -> None:
    together = Barrier(THREADS)

    def meet() -> str:
        together.wait(10)
        return current_thread().name

    names = await asyncio.gather(*(in_thread(meet)() for _ in range(THREADS * 3)))
    assert len(set(names)) == THREADS
    assert current_thread().name not in names


async def test_a_connection_that_the_server_closed_is_replaced(ada: User) -> None:
    async def everybody_asks() -> list[int]:
        return await asyncio.gather(*(in_thread(User.objects.count)() for _ in range(THREADS * 2)))

    assert await everybody_asks() == [1] * THREADS * 2
    await asyncio.to_thread(end_all_others)
    assert await everybody_asks() == [1] * THREADS * 2


def end_all_others() -> None:
    if connection.vendor != "postgresql":
        return  # nobody closes a file of SQLite for us
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE pid <> pg_backend_pid() AND datname = current_database()"
            )
    finally:
        connection.close()
