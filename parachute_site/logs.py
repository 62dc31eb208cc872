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


# As Telegram and Discord make them. Libraries put them into addresses, and addresses into errors.
_TOKENS = re.compile(
    r"(?<!\d)\d{5,20}:[A-Za-z0-9_-]{20,}|\b[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{5,8}\.[A-Za-z0-9_-]{20,}"
)


class WithoutTokens(logging.Formatter):
    """The line as it is written, with its traceback: there is no later place for a token to come in."""

    def format(self, record: logging.LogRecord) -> str:
        return without_tokens(super().format(record))


def without_tokens(text: str) -> str:
    return _TOKENS.sub("•••", text)
