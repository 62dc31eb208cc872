"""Speaks on the platforms for which there is a token. Without one it waits for the rows to have one."""

import asyncio
import os
import signal
import socket
import sys
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand


class Command(BaseCommand):
    help = "Runs the bots: Telegram and Discord, each as soon as it has a token. `up` starts it."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        if asyncio.run(_run(settings.PARACHUTE_WORKER or f"bots@{socket.gethostname()}")):
            os.execv(sys.executable, [sys.executable, *sys.argv])  # noqa: S606 - to wait as what is small


async def _run(holder: str) -> bool:
    """Until it is told to stop; True where the last token was taken away."""
    from bots_app.relay.keeping import Keeper

    keeping = asyncio.ensure_future(Keeper(holder).run())
    loop = asyncio.get_running_loop()
    for told in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(told, keeping.cancel)
    try:
        await keeping
    except asyncio.CancelledError:
        return False
    return True
