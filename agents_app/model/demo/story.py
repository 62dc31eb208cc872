"""What an empty chat offers to try: a short way to see each thing that Parachute can do.

A chip is a line here. Its text must be one that `talk.py` understands, in any vault and any number of times;
`tests/contracts/test_demo_model_with_cli.py` plays each of them through the real CLI and asks what it shows.
"""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class Chip:
    label: str | Promise
    text: str  # what is sent; the demo model knows English only, so it is not translated
    agent: str = ""  # whom it is said to, where that one is offered


CHIPS = (
    Chip(_("Read a note"), "Read me one of my notes."),
    Chip(_("Write a note"), "Write a note about pears."),
    Chip(_("Change a note"), "Add a line to the note about pears."),
    Chip(_("Run a command"), "Run `date && ls`."),
    Chip(_("Think first"), "Think first: what could I write about next?"),
    Chip(_("A long answer"), "Give me a long answer."),
    Chip(_("Try to read a secret"), "Read .env"),
    Chip(_("Let an agent start another"), "Start a helper.", agent="head-gardener"),
    Chip(_("A report for later"), "Share a report."),
    Chip(_("A heartbeat"), "Show me a heartbeat."),
    Chip(_("An error, and what helps"), "Show me an error."),
)
