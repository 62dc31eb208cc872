"""Whether each part works: "ok", or a sentence that says what does not."""

import os
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection
from redis.asyncio import Redis
from redis.exceptions import RedisError

from agents_app import workers
from sessions_app.access.models import Workspace
from sessions_app.threads import in_thread

OK = "ok"


async def checks() -> dict[str, str]:
    database = await in_thread(_database)()
    asked = database == OK
    return {
        "database": database,
        "bus": await _bus(),
        "workers": await in_thread(_workers)() if asked else "The database must answer first.",
        "model": OK,  # there is always one: the configured one, else the demo
        "vault": await in_thread(_vault)() if asked else "The database must answer first.",
    }


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "The database does not answer."
    return OK


async def _bus() -> str:
    try:
        async with Redis.from_url(settings.PARACHUTE_REDIS, socket_timeout=1) as redis:
            await redis.ping()
    except (RedisError, OSError):
        return "Redis does not answer."
    return OK


def _workers() -> str:
    missing = [queue for queue in ("turns", "background") if not workers.living(queue)]
    return f"No worker serves: {', '.join(missing)}." if missing else OK


def _vault() -> str:
    path = Workspace.objects.values_list("vault_path", flat=True).first()
    if path is None:
        return "There is no workspace yet."
    return (
        OK if Path(path).is_dir() and os.access(path, os.W_OK) else "The vault is not there or not writable."
    )
