"""The gate with the row that fences it, in a database of its own. To be imported when Django is set up, in a
process that uses no other database."""

from pathlib import Path
from time import perf_counter
from uuid import uuid4

from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from agents_app.turns.running.prepare import as_permitted
from permissions_app.gate import Gate
from permissions_app.rules.decision import Verdict
from permissions_app.rules.setting import Setting
from permissions_app.rules.tools import ToolCall
from sessions_app.access.models import Workspace
from sessions_app.models import Session, Turn, TurnStatus
from sessions_app.streaming.statements import standing_if_held
from sessions_app.threads import connected
from tests.bench.gate import unheard


def running_turn(folder: Path) -> Turn:
    connection.settings_dict["NAME"] = str(folder / "bench.sqlite3")
    call_command("migrate", verbosity=0)
    workspace = Workspace.objects.create(name="bench", vault_path=str(folder))
    session = Session.objects.create(workspace=workspace, model="m", vault_root=str(folder))
    now = timezone.now()
    held = {"status": TurnStatus.RUNNING, "attempt": 1, "boot": uuid4(), "started_at": now, "leased_at": now}
    turn: Turn = Turn.objects.create(session=session, opened_seq=1, **held)
    return turn


async def latencies(turn: Turn, setting: Setting, calls: list[ToolCall]) -> list[float]:
    look = connected(standing_if_held)

    def standing(setting: Setting) -> Setting | None:
        now = look(turn.pk, turn.attempt)
        return None if now is None else as_permitted(setting, turn.session, now.metadata)

    gate = Gate(setting, standing=standing, on_denied=unheard)
    took = list[float]()
    for call in calls:
        began = perf_counter()
        decision = await gate(call, setting.vault)
        took.append(perf_counter() - began)
        assert decision.verdict is Verdict.ALLOW, decision
    return took
