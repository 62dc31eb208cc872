"""Markdown, as agents and people write it, becomes markup that a page may show.

1. What could turn text around in the eye of its reader is made visible.
2. cmark renders it. Raw HTML is no markup here: its `<` is shown as what it is.
3. We add what a page needs: a copy button, colours, a way to scroll. In cmark's answer every `<` is a tag of
   its own, so this is safe to do with patterns; after step 4 it would not be.
4. ammonia lets through what is on our lists, and nothing else. It comes last.
"""

import html
import re
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import nh3
from cmarkgfm import markdown_to_html_with_extensions
from cmarkgfm.cmark import Options
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES

from sessions_app.storable import visible

LONGEST = 200_000  # characters; of what is longer the beginning is shown, as it was written
DEEPEST = 100  # ammonia takes seconds for a hundred thousand quotes in each other
LONGEST_COLOURED = 20_000
KEPT, LONGEST_KEPT = 1_000, 10_000  # what was rendered lately: a page that is loaded again asks for the same

EXTENSIONS = ["table", "autolink", "strikethrough", "tasklist"]
# Known to be quick: a lexer is a pile of patterns, and what they read comes from strangers.
_LANGUAGES = """
    bash c console cpp csharp css diff docker go graphql html ini java javascript js json jsx kotlin lua make
    markdown md nginx php python py ruby rust rb rs sass scss sh shell sql swift toml ts tsx typescript xml
    yaml yml zsh"""
COLOURED = frozenset(_LANGUAGES.split())

_TAGS = """
    p br hr h3 h4 h5 h6 ul ol li blockquote pre code em strong del a span div button
    table thead tbody tr th td img"""
TAGS = set(_TAGS.split())
ATTRIBUTES = {
    "a": {"href"},
    "ol": {"start"},
    "th": {"align"},
    "td": {"align"},
    "div": {"tabindex", "role", "aria-label"},
    "pre": {"tabindex"},
    "button": {"type"},
    "img": {"src", "alt", "loading"},
    **{heading: {"id"} for heading in ("h3", "h4", "h5", "h6")},
}
CLASSES = {
    "a": {"image"},
    "div": {"code", "bar", "wide"},
    "span": {"tick", "language", "lost", *filter(None, STANDARD_TYPES.values())},
    "button": {"button", "plain", "copy"},
}
SCHEMES = {"http", "https", "mailto"}
OURS = ("/api/workspaces/", "/vault/of/")  # where the pictures of a vault are
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")

# Not those of an address in <>. A character that is in no text stands in for the `<` until cmark is done.
_TAG = re.compile(r"<(?=[a-zA-Z/!?])(?!(?:https?://|mailto:)[^\s<>]*>)")
_LESS = "\ue000"
_CODE = re.compile(r'<pre><code(?: class="language-([^"]*)")?>(.*?)</code></pre>', re.DOTALL)
_IMAGE = re.compile(r'<img src="([^"]*)" alt="([^"]*)"(?: title="[^"]*")? />')
_LINK = re.compile(r'<a href="(?!https?://|mailto:)([^"]*)"(?: title="[^"]*")?>(.*?)</a>', re.DOTALL)
_HERE = re.compile(r'(<a href="[/#][^"]*") target="_blank" rel="[^"]*"')  # ours are no other site's
_WIKI = re.compile(r"!?\[\[([^\[\]<>|\n]{1,300})(?:\|([^\[\]<>\n]{1,300}))?\]\]")  # with `!`: shown in place
_SPACED = re.compile(
    r"\[([^\[\]<>\n]{1,300})\]\(&lt;([^<>\n]{1,300}?)&gt;\)"
)  # whose `<` was taken for a tag's
_IN_CODE = re.compile(r"(<pre>.*?</pre>|<code>.*?</code>)", re.DOTALL)
_HEADING = re.compile(r"<h([1-6])>(.*?)</h[1-6]>", re.DOTALL)
_MARK = re.compile(r"<[^>]*>")
_BOX = re.compile(r'<input type="checkbox"( checked="")? disabled="" />')
_formatter = HtmlFormatter(nowrap=True)


class Links(Hashable, Protocol):
    """Where links between the notes of a vault lead: to addresses of ours, which begin with a slash."""

    def of_path(self, target: str) -> str | None: ...

    def of_picture(self, target: str) -> str | None: ...

    def of_name(self, name: str) -> str: ...

    def of_named_picture(self, name: str) -> str: ...

    def place_of(self, heading: str) -> str | None: ...


@dataclass(frozen=True)
class How:
    is_whole: bool = True  # while a text is still being written its code has no colours yet
    links: Links | None = None  # without them, what is no address of the web leads nowhere
    flows: bool = False  # a paragraph fills its lines, wherever the file breaks them


def markdown(
    text: str, *, is_whole: bool = True, links: Links | None = None, flows: bool = False
) -> SafeString:
    """Safe markup."""
    how = How(is_whole, links, flows)
    if len(text) > LONGEST:
        return _as_written(text)
    if len(text) > LONGEST_KEPT or not is_whole:
        return _rendered(text, how)
    return _kept(text, how)


@lru_cache(KEPT)
def _kept(text: str, how: How) -> SafeString:
    return _rendered(text, how)


def _rendered(text: str, how: How) -> SafeString:
    plain = _TAG.sub(_LESS, visible(text.replace(_LESS, "")))
    breaks = Options.CMARK_OPT_DEFAULT if how.flows else Options.CMARK_OPT_HARDBREAKS
    found = markdown_to_html_with_extensions(plain, breaks, EXTENSIONS)
    found = found.replace(_LESS, "&lt;")
    if max(found.count("<blockquote>"), found.count("<ul>") + found.count("<ol")) > DEEPEST and _is_deep(
        found
    ):
        return _as_written(text)
    cleaned = _clean(_ours(found, how.is_whole, how.links))
    return mark_safe(_HERE.sub(r"\1", cleaned))  # noqa: S308 - ammonia has cleaned it


def _is_deep(found: str) -> bool:
    depth = deepest = 0
    for tag in re.finditer(r"<(/?)(?:blockquote|ul|ol)\b", found):
        depth += -1 if tag[1] else 1
        deepest = max(deepest, depth)
    return deepest > DEEPEST


def _as_written(text: str) -> SafeString:
    more = f"<p>{escape(_('Only the beginning is shown.'))}</p>" if len(text) > LONGEST else ""
    shown = escape(visible(text[:LONGEST]))
    return mark_safe(f'<div class="as-written">{shown}</div>{more}')  # noqa: S308 - escaped


def _ours(found: str, is_whole: bool, links: Links | None) -> str:
    found = _LINK.sub(lambda link: _lost(link[2]), found) if links is None else _linked(found, links)
    found = _CODE.sub(lambda code: _code(code[1] or "", code[2], is_whole), found)
    found = _IMAGE.sub(lambda image: _image(image[1], image[2], links), found)
    found = _HEADING.sub(lambda heading: _heading(int(heading[1]), heading[2], links), found)
    found = _BOX.sub(lambda box: f'<span class="tick">{"☑" if box[1] else "☐"}</span>', found)
    label = escape(_("Table"))
    found = found.replace(
        "<table>", f'<div class="wide" tabindex="0" role="group" aria-label="{label}"><table>'
    )
    return found.replace("</table>", "</table></div>")


def _linked(found: str, links: Links) -> str:
    """Links to notes lead there, and `[[a name]]` is one, but for what stands in code."""

    def by_path(link: re.Match[str]) -> str:
        return led(link[1], link[2])

    def by_spaced(link: re.Match[str]) -> str:
        return led(link[2], link[1])

    def led(path: str, words: str) -> str:
        address = links.of_path(html.unescape(path))
        return _lost(words) if address is None else f'<a href="{escape(address)}">{words}</a>'

    def by_name(link: re.Match[str]) -> str:
        name = html.unescape(link[1]).strip()
        if link[0].startswith("!") and name.lower().endswith(PICTURES):
            words = link[2] or ""
            return _picture(
                links.of_named_picture(name), "" if words.isdecimal() else words
            )  # else its width
        address = links.of_name(name)
        return f'<a href="{escape(address)}">{link[2] or link[1]}</a>'

    parts = _IN_CODE.split(found)  # every second one is code
    parts[::2] = [_WIKI.sub(by_name, _SPACED.sub(by_spaced, _LINK.sub(by_path, part))) for part in parts[::2]]
    return "".join(parts)


def _heading(level: int, words: str, links: Links | None) -> str:
    """The page has its own of the first two levels."""
    shown = level + 2 if level < 3 else level
    place = links.place_of(html.unescape(_MARK.sub("", words))) if links else None
    at = f' id="{escape(place)}"' if place else ""
    return f"<h{shown}{at}>{words}</h{shown}>"


def _lost(words: str) -> str:
    return f'<span class="lost">{words}</span>'


def _code(language: str, escaped: str, is_whole: bool) -> str:
    name = language.split()[0] if language.split() else ""
    copy = f'<button type="button" class="button plain copy">{escape(_("Copy"))}</button>'
    bar = f'<span class="language">{name}</span>{copy}'
    body = _coloured(name.lower(), escaped) if is_whole else escaped
    return f'<div class="code"><div class="bar">{bar}</div><pre tabindex="0"><code>{body}</code></pre></div>'


def _coloured(name: str, escaped: str) -> str:
    lexer = _lexer(name) if len(escaped) <= LONGEST_COLOURED else None
    return highlight(html.unescape(escaped), lexer, _formatter) if lexer else escaped


@lru_cache
def _lexer(name: str) -> Lexer | None:
    return get_lexer_by_name(name, stripnl=False) if name in COLOURED else None


def _image(address: str, text: str, links: Links | None) -> str:
    """A picture from elsewhere is a link and not loaded: whoever hosts it would learn who reads."""
    if address.startswith(("http://", "https://")):
        host = address.split("/")[2]
        return f'<a class="image" href="{address}">{text or _("picture")} ({host})</a>'
    ours = links.of_picture(html.unescape(address)) if links else None
    return _lost(text or _("picture")) if ours is None else _picture(ours, text)


def _picture(ours: str, text: str) -> str:
    return f'<img src="{escape(ours)}" alt="{text}" loading="lazy">'


def _clean(found: str) -> str:
    return nh3.clean(
        found,
        attribute_filter=_only_our_pictures if "<img" in found else None,
        tags=TAGS,
        attributes=ATTRIBUTES,
        allowed_classes=CLASSES,
        url_schemes=SCHEMES,
        set_tag_attribute_values={"a": {"target": "_blank"}},
        link_rel="noopener noreferrer nofollow",
        strip_comments=True,
    )


def _only_our_pictures(tag: str, attribute: str, value: str) -> str | None:
    is_foreign = tag == "img" and attribute == "src" and not value.startswith(OURS)
    return None if is_foreign else value
