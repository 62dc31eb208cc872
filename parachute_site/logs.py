"""What is worth a line in the log."""

import logging
import re


class IsNews(logging.Filter):
    """That we are not ready is told to who asks, and asked several times a second while we start."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "/api/health/ready" not in record.getMessage()


class WithoutLinks(logging.Filter):
    """Django logs the path of a request that it refuses. That of a sign-in link would let its reader in."""

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if "/signin/" in message:
            record.msg, record.args = re.sub(r"/signin/[^\s'\"?]+", "/signin/…", message), None
        return True
