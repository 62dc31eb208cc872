"""What is worth a line in the log."""

import logging


class IsNews(logging.Filter):
    """That we are not ready is told to who asks, and asked several times a second while we start."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "/api/health/ready" not in record.getMessage()
