"""Why a session is woken: a file a kind. Each says what is told (`of`), and what makes it needless by the
time at which it would be (`needless`: why, or nothing)."""

from collections.abc import Callable

from agents_app.orchestration.models import Wake, WakeKind
from agents_app.orchestration.wakes import checkup, heartbeat, message, state_change, watchdog

NEEDLESS: dict[str, Callable[[Wake], str]] = {
    WakeKind.MESSAGE: message.needless,
    WakeKind.STATE_CHANGE: state_change.needless,
    WakeKind.WATCHDOG: watchdog.needless,
    WakeKind.CHECKUP: checkup.needless,
    WakeKind.HEARTBEAT: heartbeat.needless,
}
