"""What the demo model says word for word."""

SIGNED = "— the demo model"

TRY = """\
- `list my notes`
- `read Welcome.md`
- `search for quince`
- `write a note about pears`
- `remember that the ladder is in the shed`
- `run date`
- `read .env`, to see a refusal
- `a long answer`, to watch it stream
- `show me an error`"""

LEAVE = "To talk to Claude instead, set `ANTHROPIC_API_KEY` and start Parachute again."

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

LONG = """\
Here is a long answer, so that you can watch it arrive.

An orchard teaches patience better than any book. You plant a whip of a tree no thicker than a pencil, \
you tie it to a stake, and for three years it does nothing that a visitor would notice. It is busy all \
the same. Under the grass it is finding out where the water goes in August and which way the frost comes \
down the hill, and it will not be hurried by anybody.

In the fourth spring there are five flowers. You count them twice. Two of them set fruit, a pigeon takes \
one, and in October you cut the other in half at the kitchen table, with a ceremony that it does not \
quite deserve. It tastes of very little. You write the date down anyway.

From then on the tree keeps the diary for you. The summer of the drought is a ring as thin as paper. The \
year of the wasps is a scar. The winter when nobody pruned is a tangle of shoots that you spend two \
Februaries putting right, standing on a ladder in your oldest coat while the robin waits for you to turn \
something over.

What you notice at last is that the work was never in the picking. Picking takes an afternoon. The work \
was in looking: at the canker while it was still small, at the label before it faded, at the bees on the \
one warm morning in March. A notebook helps with that, and so does a friend who walks round with you and \
asks why this branch and not the other one.

Perhaps that is what a folder of notes is for, too. Nothing much happens in it from one day to the next. \
You put down a line about a quince, a plan, the name of somebody's dog. Then a year later you come back, \
and it has grown.

That was all, and none of it was thought up just now: a demo knows its piece by heart."""
