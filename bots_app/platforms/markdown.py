"""Markdown as agents write it, in the few marks that platforms have."""

import re
from html import escape
from html.parser import HTMLParser

import cmarkgfm
from cmarkgfm.cmark import Options

_HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}
_SAME = {"strong": "b", "b": "b", "em": "i", "i": "i", "del": "s"}
_SAFE_LINK = re.compile(r"(?:https?|tg|mailto):", re.IGNORECASE)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CODE = re.compile(r"(`+[^`]*`+)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])(?!(?:https?|mailto):)")


def as_telegram(markdown: str) -> str:
    """In the tags that Telegram knows, each closed in its order."""
    html = cmarkgfm.markdown_to_html_with_extensions(
        _as_words(markdown),
        options=Options.CMARK_OPT_HARDBREAKS,
        extensions=["table", "strikethrough", "autolink"],
    )
    writer = _Telegram()
    writer.feed(html)
    writer.close()
    return re.sub(r"\n{3,}", "\n\n", "".join(writer.written)).strip()


def as_discord(markdown: str) -> str:
    """It knows most of it by itself, but no tables and no pictures."""
    lines: list[str] = []
    fence, table = "", list[str]()
    for line in [*markdown.split("\n"), None]:
        if line is not None and not fence and line.lstrip().startswith("|"):
            table.append(line)
            continue
        if table:
            is_table = len(table) > 1 and set(table[1].strip()) <= set("|-: ")
            lines += ["```", *table, "```"] if is_table else table
            table = []
        if line is None:
            break
        if found := _FENCE.match(line):
            fence = "" if fence and found[1].startswith(fence) else fence or found[1]
        lines.append(line if fence else re.sub(r"!\[([^\]]*)\]\(", r"[\1](", line))
    return "\n".join(lines)


def _as_words(markdown: str) -> str:
    """Tags are text here: the renderer would leave them out, and with them half of `List<int>`."""
    lines: list[str] = []
    fence = ""
    for line in markdown.split("\n"):
        if found := _FENCE.match(line):
            fence = "" if fence and found[1].startswith(fence) else fence or found[1]
        parts = [line] if fence else _CODE.split(line)
        lines.append("".join(part if part[:1] == "`" else _TAG.sub("&lt;", part) for part in parts))
        if fence:
            lines[-1] = line
    return "\n".join(lines)


class _Telegram(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.written: list[str] = []
        self._lists: list[int | None] = []  # the next number of each; None: without
        self._open: list[str] = []  # what closes each tag that is open
        self._in_code = 0
        self._cells = 0
        self._is_between_cells = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in ("ul", "ol"):
            self._lists.append(int(given.get("start") or 1) if tag == "ol" else None)
            self._on_new_line()
        elif tag == "li":
            self._bullet()
        elif tag in ("td", "th"):
            self._write(" | " if self._cells else "")
            self._cells += 1
            self._is_between_cells = False
        elif tag in ("table", "thead", "tbody", "tr"):
            self._cells = 0
            self._is_between_cells = True
        elif tag == "br":
            pass  # the line break itself follows it
        elif tag == "hr":
            self._write("———\n")
        elif tag == "img":
            self._write(escape(given.get("alt") or given.get("src", ""), quote=False))
        else:
            self._mark(tag, given)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("ul", "ol"):
            self._lists.pop()
            self._write("" if self._lists else "\n")
        elif tag in ("p", "tr"):
            self._write("\n" if self._lists or tag == "tr" else "\n\n")
        elif tag == "table":
            self._is_between_cells = False
            self._write("\n")
        elif tag in ("td", "th"):
            self._is_between_cells = True
        elif self._open and tag in (*_HEADINGS, *_SAME, "blockquote", "pre", "code", "a"):
            self._close()

    def handle_data(self, data: str) -> None:
        if not self._in_code and not data.strip() and "\n" in data:
            # Between blocks it is layout; within a line it is a break.
            begins = not self.written or self.written[-1].endswith(("\n", "<blockquote>"))
            if not (begins or self._is_between_cells):
                self._write("\n")
            return
        if not self._in_code:
            data = data.lstrip("\n") if "".join(self.written[-1:]).endswith("\n") else data
        self._write(escape(data, quote=False))

    def _mark(self, tag: str, given: dict[str, str]) -> None:
        if tag in _HEADINGS:
            self._put("<b>", "</b>\n\n")
        elif tag in _SAME:
            self._put(f"<{_SAME[tag]}>", f"</{_SAME[tag]}>")
        elif tag == "blockquote":
            self._on_new_line()
            self._put("<blockquote>", "</blockquote>\n")
        elif tag == "pre":
            self._on_new_line()
            self._in_code += 1
            self._put("<pre>", "</pre>\n\n")
        elif tag == "code":
            self._code(given)
        elif tag == "a":
            is_safe = _SAFE_LINK.match(given.get("href", ""))
            self._put(f'<a href="{escape(given["href"])}">' if is_safe else "", "</a>" if is_safe else "")

    def _code(self, given: dict[str, str]) -> None:
        self._in_code += 1
        language = given.get("class", "")
        is_known = self._open[-1:] == ["</pre>\n\n"] and re.fullmatch(r"language-[\w+#.-]+", language)
        self._put(f'<code class="{language}">' if is_known else "<code>", "</code>")

    def _put(self, opening: str, closing: str) -> None:
        self._write(opening)
        self._open.append(closing)

    def _close(self) -> None:
        closing = self._open.pop()
        if closing.startswith(("</pre>", "</code>")):
            self._in_code -= 1
        if closing.startswith(("</code>", "</blockquote>")):  # the last line break belongs behind it
            while self.written and self.written[-1].endswith("\n"):
                self.written[-1] = self.written[-1].rstrip("\n")
                if not self.written[-1]:
                    self.written.pop()
        self._write(closing)

    def _bullet(self) -> None:
        self._on_new_line()
        number = self._lists[-1] if self._lists else None
        if number is not None:
            self._lists[-1] = number + 1
        inner = "  " * max(len(self._lists) - 1, 0)
        self._write(f"{inner}{f'{number}.' if number is not None else '•'} ")

    def _on_new_line(self) -> None:
        if self.written and not self.written[-1].endswith("\n"):
            self._write("\n")

    def _write(self, text: str) -> None:
        if text:
            self.written.append(text)
