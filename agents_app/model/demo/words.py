"""What the demo model says word for word."""

from pathlib import Path

SIGNED = "— the demo model"

TRY = """\
- `list my notes`
- `read Welcome.md`
- `search for quince`
- `write a note about pears`
- `add a line to the note about pears`
- `remember that the ladder is in the shed`
- `run date`
- `read .env`, to see a refusal
- `a long answer`, to watch it stream
- `think first`
- `show me an error`, and send it again
- `start a helper`, `share a report` and `show me a heartbeat`"""

LEAVE = "To talk to Claude instead, enter a key under Settings. It counts from the next message on."

GREETING = f"""\
Hello! I am the demo model that is built into Parachute. I am not Claude, and I am not clever: I know a \
few phrases, and I follow them with the real tools, so that you can see how Parachute works before you \
give it a key. Try one of these:

{TRY}

{LEAVE}"""

LOST = f"""\
That is more than I understand: I am only the demo model, not Claude. These I can do:

{TRY}

{LEAVE}"""

THANKS = "You are welcome. That was all done by the demo; Claude will have more to say."

INTERRUPTED = "I was interrupted, and as a demo I do not pick up a thread that was cut. Ask me once more"

SECRETS = """\
I tried to read {path}, and was refused. That is as it should be: such files hold secrets, and Parachute \
keeps them from every agent, whatever it is told and by whom. Your secrets stayed where they are."""

NO_NOTES = "I looked, and there is no note here yet. `write a note about pears` would change that."

FACTS = (
    "- They ripen from the inside out, so press near the stalk.",
    "- Picked hard and kept cool, they last until the new year.",
    "- A ripe one smells of itself.",
)

THOUGHT = """\
They want to know what to write about next. I could look into their notes, but they asked me to think, so \
I think where they can see it. What makes a note worth having? Not that it is long: that it is there when \
it is looked for. So it should be something that happens only once, or that is forgotten first. The \
weather of a day is soon gone. So is the reason for a decision, long before the decision itself."""

AFTER_THOUGHT = """\
Write down **why** you decided something this week. What you decided will still be there next year; the \
reasons will not.

What I thought before I said so is folded above. Claude thinks about your notes; a demo thinks the same each \
time."""

OVERLOADED = "The demo was asked to show what happens when a model has too much to do."

RECOVERED = """\
This time it worked. The first answer was an error as they come now and then: a model that has too much \
to do. Nothing was lost; the same words, sent again, were all it took. If Claude cannot answer, this page \
says why, and what helps."""

LONG = Path(__file__).with_name("long_answer.md").read_text(encoding="utf-8").strip()

NO_HELPERS = """\
This agent may start nobody yet. An owner of the workspace can let it, on the page **Agents**: choose the \
agent there, and **Accept** what its file asks for (the head gardener of the sample notes asks to start two \
others), or switch on whom it may start, under **Can spawn**. Then say `start a helper` again."""

STARTED = """\
I have started another agent, and my turn ends here: nobody has to wait. It works in a chat of its own, \
which is listed above. When it says something, or has ended, Parachute wakes me with a line here."""

NO_SHARES = "For that I would need the tool `share`, and it is not offered in this session."

REPORT = """\
This is what a share looks like. An agent that works by itself leaves one where people should know \
something. One whose title begins with **Needs human review:** stands at the top until somebody has seen to
it."""

SHARED = "It is on the page **Shares** now, until somebody says that it is done with."

HEARTBEAT = """\
This is what a heartbeat is: an agent whose file names times is woken at each of them, looks whether there \
is something to do, and goes back to rest. This time there was nothing, so I said that I am quiescent. \
Between two of them nothing runs, and nothing is paid for."""

WOKEN = "I have heard it. There is nothing more to do, so I rest until I am woken again."
