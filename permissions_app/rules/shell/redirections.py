"""What the redirections of a command say: which files they open, and what they feed in."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tree_sitter import Node

from permissions_app.rules.shell.parse import Unreadable, is_whole_line, text_of
from permissions_app.rules.shell.reading import Outcome
from permissions_app.rules.shell.shapes import VALUES, only
from permissions_app.rules.shell.words import UNKNOWN

if TYPE_CHECKING:
    from permissions_app.rules.shell.walk import Line


@dataclass
class Redirected:
    stdin: str | None
    more: list[Node] = field(default_factory=list)  # words of the command that stand behind a redirection
    after: list[Node] = field(default_factory=list)  # what stands behind `<<EOF`, and runs after the command
    printed_away: bool = False
    feeds: bool = False  # something else takes what it prints


def read(line: "Line", nodes: Iterable[Node], stdin: str | None) -> Redirected:
    """All of one command together."""
    found = Redirected(stdin)
    waiting = list(nodes)
    while waiting:
        node = waiting.pop(0)
        process = _from_process(node)
        if process is not None:
            printed = line.visit(process, None)
            found.stdin = UNKNOWN if printed is None else printed
        elif node.type == "file_redirect":
            found.more += file(line, node)
            found.printed_away |= not re.match(r"2|<", text_of(node))
            found.feeds |= found.printed_away and not text_of(node).endswith("/dev/null")
            found.stdin = UNKNOWN if re.match(r"0?<", text_of(node)) else found.stdin
        elif node.type == "herestring_redirect":
            found.stdin = herestring(line, node)
        elif node.type == "heredoc_redirect":
            found.stdin = _heredoc(line, node)
            for inner in node.named_children:
                if inner.type in {"file_redirect", "herestring_redirect"}:
                    waiting.append(inner)
                elif node.child_by_field_name("argument") is not None and inner.type in VALUES:
                    found.more.append(inner)
                elif not inner.type.startswith("heredoc") and inner.type != "file_descriptor":
                    found.after.append(inner)
    found.feeds |= bool(found.after)
    return found


def _from_process(node: Node) -> Node | None:
    """`< <(…)`."""
    targets = node.named_children
    is_read = [child.type for child in node.children if not child.is_named] == ["<"]
    return targets[0] if is_read and [each.type for each in targets] == ["process_substitution"] else None


def file(line: "Line", node: Node) -> list[Node]:
    """Looks at where it leads; gives back words that the parser took along and that are the command's."""
    targets = [child for child in node.named_children if child.type != "file_descriptor"]
    writes = any(">" in child.type for child in node.children)
    for words in line.expander.words(targets[0]) if targets else []:
        if text_of(node).lstrip("0123456789").startswith((">&", "<&")) and words[0].text.isdigit():
            continue
        line.paths.write(words) if writes else line.paths.name(words)
        if writes and any(not word.known for word in words):
            line.reading.found(Outcome.UNREADABLE)
    return targets[1:]


def herestring(line: "Line", node: Node) -> str:
    texts = {text for child in node.named_children for text in line.expander.texts(child)}
    return only(texts)


def _heredoc(line: "Line", node: Node) -> str:
    inner = {child.type: child for child in node.named_children}
    start, body = inner.get("heredoc_start"), inner.get("heredoc_body")
    end = inner.get("heredoc_end")
    if start is None or body is None or end is None:
        raise Unreadable
    text, delimiter = text_of(body), re.sub(r"[\\'\"]", "", text_of(start))
    lines = [each.lstrip("\t") if node.children[0].type == "<<-" else each for each in text.split("\n")]
    lines = [*lines[:-1]] if not lines[-1].strip("\t") else lines
    if text_of(end).strip("\t") != delimiter or delimiter in lines or not is_whole_line(end):
        raise Unreadable  # the parser and Bash would end it at different lines
    text = "".join(f"{each}\n" for each in lines)
    if re.search(r"[\\'\"]", text_of(start)) or not re.search(r"[$`\\]", text):
        return text
    line.left_as_text(text)
    return text + UNKNOWN if re.search(r"[$`]", text) else text.replace("\\\n", "")
