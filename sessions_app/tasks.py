from celery import shared_task
from django.conf import settings

from sessions_app import copies
from sessions_app.search import indexing


@shared_task
def index_sessions() -> None:
    if indexing.index_sessions():
        _give_meaning()


@shared_task
def index_changed() -> None:
    indexing.index_changed()
    _give_meaning()


def _give_meaning() -> None:
    if settings.PARACHUTE_EMBEDDER:
        from sessions_app.search import meaning

        meaning.catch_up()


@shared_task
def write_copies() -> None:
    copies.write_copies()
