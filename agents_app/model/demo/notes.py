"""What the demo model does with notes. Which step is next follows from what the tools have answered."""

import itertools
import posixpath

from agents_app.model.demo import findings, words
from agents_app.model.demo.conversation import Asked, ToolResult
from agents_app.model.demo.replies import absolute, capital, last, line, say, slug, use, use_and_tell
from agents_app.model.demo.wire import Reply

FOR_AGENTS = frozenset({"CLAUDE.md", "AGENTS.md"})
LIKED = "Welcome.md"
OURS = "the demo model"  # stands in each note that it wrote, and no other is changed


def read_one(asked: Asked) -> Reply:
    """Looks for notes, opens one, and tells what it says; or says that there is none."""
    if last(asked, "Read"):
        return use_and_tell(asked, "Read", {}, "")
    found = last(asked, "Glob")
    if found is None:
        thought = "They want to see one of their notes. First I look which there are."
        return use(asked, "Glob", {"pattern": "**/*.md"}, thought)
    if not (notes := [path for path in _paths(found) if posixpath.basename(path) not in FOR_AGENTS]):
        return say(asked, words.NO_NOTES)
    chosen = next((path for path in notes if posixpath.basename(path) == LIKED), notes[0])
    return use(asked, "Read", {"file_path": absolute(chosen, asked)}, f"I open {chosen}.")


def write(asked: Asked, title: str, body: str) -> Reply:
    """Writes under a name that is free: the Write tool would replace a note without a word."""
    if not asked.results and "Glob" in asked.tools:
        return _look_for(asked, title, "A new note. First I look which names are taken.")
    if last(asked, "Write"):
        return use_and_tell(asked, "Write", {}, "")
    return _write_anew(asked, title, body, "That name is free. I keep the note short, to be added to.")


def about(topic: str) -> str:
    return f"A note about {topic}, begun by {OURS}.\n\n- What I know:\n- What I want to find out:\n"


def add_line(asked: Asked, topic: str) -> Reply:
    """Adds to a note of its own: one that is there, else one that it writes first."""
    if last(asked, "Edit"):
        return use_and_tell(asked, "Edit", {}, "")
    if written := last(asked, "Write"):
        content = "" if written.is_error else str(written.input.get("content", ""))
        return _add_to(asked, written, content) if content else use_and_tell(asked, "Write", {}, "")
    if read := last(asked, "Read"):
        content = "" if read.is_error else findings.content(read)
        if OURS in content:
            return _add_to(asked, read, content)
        thought = "That note is none of mine, and I leave it as it is. I begin one of my own."
        return _write_anew(asked, topic, about(topic), thought)
    found = last(asked, "Glob")
    if found is None:
        return _look_for(asked, topic, f"They want a line in the note about {topic}. I look for it.")
    if notes := _paths(found):
        return use(asked, "Read", {"file_path": absolute(notes[0], asked)}, f"I open {notes[0]} first.")
    return _write_anew(asked, topic, about(topic), "There is no such note yet. I begin one, then add to it.")


def _look_for(asked: Asked, title: str, thought: str) -> Reply:
    return use(asked, "Glob", {"pattern": f"Notes/{slug(title)}*.md"}, thought)


def _write_anew(asked: Asked, title: str, body: str, thought: str) -> Reply:
    found = last(asked, "Glob")
    taken = {posixpath.basename(path) for path in _paths(found)} if found else set()
    path = absolute(f"Notes/{_free(slug(title), taken)}", asked)
    return use(asked, "Write", {"file_path": path, "content": f"# {capital(line(title))}\n\n{body}"}, thought)


def _add_to(asked: Asked, note: ToolResult, content: str) -> Reply:
    old = _end_of(content)
    fresh = next((fact for fact in words.FACTS if fact not in content), None)
    added = fresh or f"- Looked at once more, with {len(content.splitlines())} lines in it."
    given = {"file_path": note.input.get("file_path", ""), "old_string": old, "new_string": f"{old}\n{added}"}
    return use(asked, "Edit", given, "I know where it ends. One line more, and the rest stays as it is.")


def _end_of(content: str) -> str:
    """The last lines, as few as there is only one place for: the Edit tool wants to know which."""
    lines = content.rstrip().splitlines()
    ends = ("\n".join(lines[start:]) for start in range(len(lines) - 1, -1, -1))
    return next((end for end in ends if content.count(end) == 1), content.rstrip())


def _paths(found: ToolResult) -> list[str]:
    if found.is_error or found.text.startswith("No files found"):
        return []
    return [path for path in found.text.splitlines() if path.endswith(".md")]


def _free(name: str, taken: set[str]) -> str:
    names = itertools.chain([f"{name}.md"], (f"{name}-{number}.md" for number in itertools.count(2)))
    return next(each for each in names if each not in taken)
