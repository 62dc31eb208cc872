"""Who has spoken in a session: whether it has read what strangers wrote, and which hosts people named in it.

From the first of these on it is held to the second: text of the web may tell an agent what to do, and an
address can carry away what the session knows.
"""

import re
from collections.abc import Iterator
from uuid import UUID

from permissions_app.rules.hosts import host_of
from permissions_app.rules.paths import NotUnderstood
from sessions_app.models import Message, Session, Speaker

BY_PEOPLE = (Speaker.USER, Speaker.API)

_ADDRESS = re.compile(r"https?://[^\s/?#\"'<>()\\`,;|]+", re.IGNORECASE)
_NAME = re.compile(r"(?<![\w@./:\\-])(?:[a-z0-9-]+\.)+[a-z]{2,24}(?![\w@-]|\.\w)", re.IGNORECASE)
# Endings of files that are endings of hosts too: who speaks of `README.md` names no host in Moldova.
_FILES = frozenset({"bz", "cc", "md", "mk", "mov", "pl", "ps", "py", "rs", "sh", "so", "zip"})


def mark(session_id: UUID) -> None:
    """It has read what strangers wrote, or is about to. Nothing takes that back."""
    Session.objects.filter(pk=session_id, has_read_strangers=False).update(has_read_strangers=True)


def named_hosts(session_id: UUID) -> frozenset[str]:
    """In what people said themselves: not in what they quoted as context, nor in files."""
    said = Message.objects.filter(session=session_id, source__in=BY_PEOPLE).values_list("content", flat=True)
    return frozenset(host for text in said.iterator() for host in hosts_in(text))


def hosts_in(text: str) -> Iterator[str]:
    """Whole addresses, and names that stand by themselves and cannot be taken for a file's."""
    addresses = [found[0] for found in _ADDRESS.finditer(text)]
    names = [found[0] for found in _NAME.finditer(text)]
    addresses += [f"https://{each}" for each in names if each.rpartition(".")[2].lower() not in _FILES]
    for address in addresses:
        try:
            yield host_of(f"{address.rstrip('.:!')}/")
        except NotUnderstood:
            continue
