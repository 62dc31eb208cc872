"""The parts of pages beside the chat that change by themselves. What a part is made of is looked at again
every second for whoever has it on their screen, and told where it is another than it was."""

from collections.abc import Callable
from typing import Any

from django.template.loader import render_to_string

from parachute_site.pages import agents, bots, family, runs
from sessions_app.access.caller import Caller

LOOKS_EVERY = 1.0  # seconds

Draw = Callable[[Caller, str, str, str], tuple[str, dict[str, Any]]]  # part, workspace, what was chosen

PARTS: dict[str, Draw] = {
    "agents": agents.parts,
    "agent": agents.parts,
    "family": family.part,
    "runs": runs.parts,
    "run": runs.parts,
    "bots": bots.parts,
    "bot": bots.parts,
    "bot-request": bots.parts,
}


def drawn(caller: Caller, part: str, of: str) -> str:
    """Its markup now. `of` names its workspace and, after a blank, what is chosen there."""
    workspace, _, chosen = of.partition(" ")
    template, context = PARTS[part](caller, part, workspace, chosen)
    return render_to_string(template, context)
