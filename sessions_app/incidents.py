"""What was not foreseen: a line in the log with all of it, and a number by which to find that line."""

import logging
from uuid import uuid4

from sessions_app.errors import ParachuteError


def incident(log: logging.Logger, what: str, error: BaseException) -> ParachuteError:
    number = uuid4().hex[:12]
    log.error("%s failed, incident %s", what, number, exc_info=error)
    message = "Something failed that was not foreseen. The log has it under this incident."
    return ParachuteError(message, incidentId=number)
