from celery import shared_task

from permissions_app.audit import sealing


@shared_task
def seal_audit() -> None:
    sealing.each_minute()
