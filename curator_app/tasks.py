from celery import shared_task

from curator_app import services


@shared_task
def observe() -> None:
    """A doorbell: the rows say what waits."""
    from curator_app import worker  # here, because only the background worker has one

    worker.ring()


@shared_task
def sweep() -> None:
    if services.sweep():
        observe()
    services.take_lines_back()
