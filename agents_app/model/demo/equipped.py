"""What the demo model does with the server and the skill of the sample vault, where they are switched on."""

from agents_app.model.demo import findings, words
from agents_app.model.demo.conversation import Asked
from agents_app.model.demo.replies import capital, last, say, use
from agents_app.model.demo.wire import Reply

HARVEST = "mcp__garden__harvest"
REVIEW = "vault:month-in-review"


def harvest(asked: Asked, plant: str) -> Reply:
    """Asks the garden's own server."""
    if answered := last(asked, HARVEST):
        return say(asked, findings.tell(answered, asked))
    if HARVEST not in asked.tools:
        return say(asked, words.NO_SERVER)
    thought = f"They ask what {plant} has yielded. The garden's server counts that from the notes."
    return use(asked, HARVEST, {"plant": capital(plant)}, thought)


def review(asked: Asked) -> Reply:
    """By the skill: which it reads first, and then the notes that it speaks of."""
    if found := last(asked, "Glob"):
        return say(asked, words.REVIEWED.format(found=findings.tell(found, asked)))
    if used := last(asked, "Skill"):
        if used.is_error:
            return say(asked, findings.tell(used, asked))
        return use(asked, "Glob", {"pattern": "Daily/*.md"}, "The skill says to read the days first.")
    if REVIEW not in str(asked.body):
        return say(asked, words.NO_SKILL)
    return use(asked, "Skill", {"skill": REVIEW}, "There is a skill for that. I read what it says.")
