"""Whether each part works: "ok", or a sentence that says what does not."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection
from redis.asyncio import Redis
from redis.exceptions import RedisError

from agents_app.model import chosen
from agents_app.workers import living
from sessions_app.access.models import Workspace
from sessions_app.threads import in_thread

OK = "ok"


async def checks() -> dict[str, str]:
    database, bus, serving, model, vault = await asyncio.gather(
        in_thread(_asked)(_database),
        _bus(),
        in_thread(_asked)(_workers),
        in_thread(_asked)(_model),
        in_thread(_asked)(_vault),
    )
    return {
        "database": database,
        "bus": bus,
        "workers": serving,
        "model": model,
        "vault": vault,
    }


def _asked(check: Callable[[], str]) -> str:
    try:
        return check()
    except DatabaseError:
        return "The database does not answer."


def _database() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return OK


async def _bus() -> str:
    try:
        url = settings.PARACHUTE_REDIS
        async with Redis.from_url(url, socket_timeout=1, socket_connect_timeout=1) as redis:
            await redis.ping()
    except (RedisError, OSError, ValueError):
        return "Redis does not answer."
    return OK


def _workers() -> str:
    missing = [queue for queue in ("turns", "background") if not living.count(queue)]
    return f"No worker serves: {', '.join(missing)}." if missing else OK


def _model() -> str:
    """There is always one: the configured one, the stored one, else the demo. No call is made."""
    return chosen.current().problem or OK


def _vault() -> str:
    path = Workspace.objects.values_list("vault_path", flat=True).first()
    if path is None:
        return "There is no workspace yet."
    return (
        OK if Path(path).is_dir() and os.access(path, os.W_OK) else "The vault is not there or not writable."
    )
