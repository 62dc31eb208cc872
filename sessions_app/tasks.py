from celery import shared_task

from sessions_app import copies
from sessions_app.search import indexing


@shared_task
def index_sessions() -> None:
    indexing.index_sessions()


@shared_task
def index_changed() -> None:
    indexing.index_changed()


@shared_task
def write_copies() -> None:
    copies.write_copies()
