"""Whatever an agent writes, the page gets only what is on our lists."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parachute_site.pages import markup
from parachute_site.pages.markup import ATTRIBUTES, CLASSES, DEEPEST, LONGEST, TAGS, markdown
from sessions_app.storable import visible

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg/onload=alert(1)>",
    "<style>*{display:none}</style>",
    "<!-- --><iframe src=//evil.example></iframe>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](&#106;avascript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:msgbox)",
    "[x](//evil.example)",
    "[x](http://a.example \"onclick=alert(1) <table>\")",
    "[x]\n\n[x]: javascript:alert(1)",
    "<javascript:alert(1)>",
    "![x](http://evil.example/x.png)",
    "![\"><script>alert(1)</script>](http://evil.example/\"x)",
    "![x](javascript:alert(1))",
    "[![x](http://evil.example/x.png)](http://evil.example)",
    "```\"><script>alert(1)</script>\ncode\n```",
    "```python onload=alert(1)\nx = '<script>'\n```",
    "| <script>a</script> | b |\n|---|---|\n| <img src=x> | [x](javascript:1) |",
    "- [ ] <b onclick=alert(1)>x</b>",
    "`<script>`",
    "<details open ontoggle=alert(1)>",
    "<form action=//evil.example><button>x</button></form>",
    "<base href=//evil.example>",
    "</div></div><div class=\"trouble\" data-action=\"retry\">",
]  # fmt: skip


class Seen(HTMLParser):
    """Every tag and attribute that a browser would see."""

    def __init__(self, found: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(found)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def assert_is_tame(found: str) -> None:
    for tag, attributes in Seen(found).tags:
        assert tag in TAGS
        extra = {"a": {"target", "rel", "title"}}.get(tag, {"title", "lang"})
        assert attributes.keys() <= ATTRIBUTES.get(tag, set()) | extra | {"class"}
        classes = set((attributes.get("class") or "").split())
        assert classes <= CLASSES.get(tag, set()) | {"as-written"}
        if "href" in attributes:
            assert str(attributes["href"]).startswith(("http://", "https://", "mailto:"))
            assert attributes["rel"] == "noopener noreferrer nofollow"


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("around", ["{}", "> {}", "- a\n- {}", "# {}", "**{}**", "x\n\n{}\n\nx"])
@pytest.mark.parametrize("is_whole", [True, False])
def test_nothing_hostile_passes(text: str, around: str, is_whole: bool) -> None:
    assert_is_tame(markdown(around.format(text), is_whole=is_whole))


@given(
    st.lists(st.sampled_from([*HOSTILE, "\n", "\n\n", "> ", "- ", "```", "|", "*", "`", '"', "<", "&quot;"]))
)
def test_nor_in_any_mixture(pieces: list[str]) -> None:
    assert_is_tame(markdown("".join(pieces)))


def test_what_markdown_says_is_shown() -> None:
    found = markdown("# A\n\n**b** `c` ~~d~~\n\n- [x] e\n\n| f |\n|---|\n| g |\n\n> h\n\nhttps://i.example")
    for part in ("<h3>A</h3>", "<strong>b</strong>", "<code>c</code>", "<del>d</del>", "☑", "<td>g</td>"):
        assert part in found
    assert 'href="https://i.example"' in found


def test_code_has_its_language_colours_and_a_button_that_copies() -> None:
    found = markdown("```python\ndef f(): pass\n```")
    assert '<span class="language">python</span>' in found
    assert '<span class="k">def</span>' in found
    assert 'class="button plain copy"' in found


def test_code_that_is_still_written_has_no_colours() -> None:
    assert '<span class="k">' not in markdown("```python\ndef f(): pass", is_whole=False)


def test_the_words_of_code_are_what_was_written() -> None:
    code = "if a < b && c > 'd':\n\t\"&amp;\"\n"
    for language in ("python", "unheard-of", ""):
        assert code in Seen(markdown(f"```{language}\n{code}```")).text


def test_a_picture_from_elsewhere_is_a_link_that_says_where_it_leads() -> None:
    found = markdown("![a tree](https://pictures.example/tree.png)")
    assert "<img" not in found
    assert "a tree (pictures.example)" in found


def test_a_link_into_the_vault_is_no_address_of_ours() -> None:
    assert markdown("[a note](Garden/Quinces.md)").strip() == '<p><span class="lost">a note</span></p>'


def test_what_turns_text_around_is_named() -> None:
    assert visible("invoice\u202egnp.exe") == "invoice\N{REPLACEMENT CHARACTER}U+202Egnp.exe"
    assert "\u202e" not in markdown("a\u202eb `c\u2066d`")
    assert visible("עברית\u200f") == "עברית\u200f"  # the marks that such a language needs are left alone


@pytest.mark.parametrize("deep", [">" * 100_000 + "a", "\n".join("  " * i + "- a" for i in range(2_000))])
def test_what_is_too_deep_is_shown_as_it_was_written(deep: str) -> None:
    found = markdown(deep)
    assert 'class="as-written"' in found
    assert {tag for tag, _ in Seen(found).tags} <= {"div", "p"}


def test_a_list_of_many_lists_is_not_deep() -> None:
    assert "as-written" not in markdown("- a\n\nb\n\n" * DEEPEST * 3)


def test_what_is_very_long_is_shown_as_it_was_written() -> None:
    found = markdown("*" + "a" * LONGEST * 3)
    assert 'class="as-written"' in found
    assert "Only the beginning is shown." in found
    assert len(found) < LONGEST + 200


def test_html_is_shown_as_the_text_that_it_is() -> None:
    text = "Use the <details> tag, </b> or <!-- this -->: a < b, `<code>` and <http://a.example>.\n\n\t<pre>"
    seen = Seen(markdown(text))
    for part in ("the <details> tag, </b> or <!-- this -->: a < b, <code> and", "<pre>"):
        assert part in seen.text
    assert {tag for tag, _ in seen.tags} == {"p", "code", "a", "div", "span", "button", "pre"}


def test_what_is_kept_of_what_was_rendered_is_bounded() -> None:
    markup._kept.cache_clear()
    markdown("x" * (markup.LONGEST_KEPT + 1))
    assert markup._kept.cache_info().currsize == 0
