"""What the server makes of agents' files: both shapes, what is wrong with its line, and names of any kind."""

import os
import time
import unicodedata
from pathlib import Path

import pytest
from django.test import override_settings

from agents_app.definitions import files
from agents_app.definitions.definition import Definition, defined
from agents_app.definitions.rights import Rights

SEEDS_OWN = """---
name: Agent Name
description: What this agent does
model: claude-sonnet-4-20250514
system_prompt: |
  You are a helpful assistant...
---

# Agent Name

Additional context for the agent.
"""


def made(text: str | bytes) -> Definition:
    return defined("gardener", "Agents/gardener.md", text if isinstance(text, bytes) else text.encode())


def matter(fields: str, body: str = "") -> Definition:
    return made(f"---\n{fields}\n---\n{body}")


def problem(definition: Definition) -> tuple[int | None, str, str]:
    assert not definition.is_usable
    first = definition.problems[0]
    return first.line, first.field, first.message


@pytest.fixture
def agents(vault: Path) -> Path:
    folder = vault / "Agents"
    folder.mkdir()
    return folder


def by_path(vault: Path) -> dict[str, Definition]:
    return {each.path: each for each in files.read_all(vault)}


class TestOneFile:
    def test_the_seeds_own_example_is_understood(self) -> None:
        found = made(SEEDS_OWN)
        assert found.is_usable
        assert (found.name, found.model) == ("Agent Name", "claude-sonnet-4-20250514")
        assert found.prompt.startswith("You are a helpful assistant...")
        assert found.prompt.endswith("Additional context for the agent.")
        assert not found.all_problems

    def test_both_shapes_say_the_same(self) -> None:
        flat = matter('name: G\ntools: [Read, Write]\nwrite_permissions: ["Garden/**"]\nkind: scheduled')
        nested = matter(
            "agent:\n  name: G\n  kind: scheduled\n  permissions:\n"
            '    tools: [Read, Write]\n    write: ["Garden/**"]'
        )
        assert (
            flat.wanted
            == nested.wanted
            == Rights(kind="scheduled", tools=("Read", "Write"), write=("Garden/**",))
        )
        assert flat.name == nested.name

    def test_the_body_is_the_prompt_where_there_is_no_other(self) -> None:
        assert matter("name: G", "You keep the garden.").prompt == "You keep the garden."
        assert matter("name: G").prompt == ""

    @pytest.mark.parametrize(
        ("fields", "line", "field", "said"),
        [
            ("name: G\nmodel: [sonnet]", 3, "model", "text was expected, and this is a list"),
            ("kind: gardener", 2, "kind", "is not one of"),
            ("agent:\n  name: G\n  trust: everything", 4, "trust", "is not one of"),
            ("tools:\n  - Read\n  - 'rm -rf'", 4, "tools.1", "is not the name of a tool"),
            ("write_permissions: ['../elsewhere/**']", 2, "write_permissions.0", "not a path in the vault"),
            ("schedule: every morning", 2, "schedule", "five parts were expected"),
            ("schedule: 0 25 * * *", 2, "schedule", "five parts were expected"),
            ("timezone: Garden/Bed", 2, "timezone", "is not a time zone"),
            ("budget_usd_per_day: -1", 2, "budget_usd_per_day", "greater than or equal to 0"),
            ("max_turns: many", 2, "max_turns", "a whole number was expected"),
            ("agent: G", 2, "agent", "fields were expected below it"),
            ("permissions:\n  bash: 7", 3, "permissions.bash", "true or false was expected"),
            ("mcpServers: [parachute]", 2, "mcpServers.0", "Parachute's own server"),
            ("mcpServers:\n  the shed: {command: ls}", 2, "mcpServers", "is not the name of a server"),
            ("mcpServers: [{shed: {comand: ls}}]", 2, "mcpServers.0.shed", "say what it is"),
            ("mcpServers: shed", 2, "mcpServers", "a list was expected, and this is text"),
            ("name: 2026-11-20", 2, "name", "this is a date; put it in quotes"),
            ("name: G\nname: H", 3, "", "stands here twice"),
            ("name: 'G", 2, "", "not the YAML of front matter: a quote has no end."),
            ("name: the: G", 2, "", "Put text that holds one in quotes"),
            ("name: @G", 2, "", "Put it in quotes"),
            ("name: G\n\ttools: [Read]", 3, "", "a tab"),
            ("name: &a G\nmodel: *a", 2, "", "References"),
            ("- a\n- b", 2, "", "Fields were expected"),
            ("name: !!bool perhaps", 2, "", "cannot be read"),
            ("name: !!int ''", 2, "", "cannot be read"),
            ("name: !!timestamp soon", 2, "", "cannot be read"),
            ("name: 0x" + "f" * 5_000, 2, "", "cannot be read"),
            ("mcpServers: {a: {b: 0x" + "f" * 5_000 + "}}", 2, "", "cannot be read"),
            ('"tools\\ud800": 1', 2, "", "a character that is no text"),
        ],
    )
    def test_what_is_wrong_is_told_with_its_line_and_field(
        self, fields: str, line: int, field: str, said: str
    ) -> None:
        found = problem(matter(fields))
        assert found[:2] == (line, field)
        assert said in found[2]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("# A note", "does not begin with front matter"),
            ("", "does not begin with front matter"),
            ("---\nname: G\n", "has no end"),
            (b"---\nname: \xff\n---\n", "no text in UTF-8"),
            ("---\n" + "a: [" * 2_000 + "\n---\n", "nested too deeply"),
            ("---\na: \x00\n---\n", "no text"),
            ("---\nname: G\n---\nYou are \x00\n", "no text"),
            ('---\nname: "\\0"\n---\n', "no text"),
        ],
    )
    def test_what_cannot_be_read_at_all_is_told_too(self, text: str | bytes, said: str) -> None:
        assert said in problem(made(text))[2]

    @pytest.mark.parametrize("fields", ["a: " + "[" * 200_000, "a: [" + "b," * 100_000 + "]"])
    def test_what_is_made_to_be_slow_is_not_read_to_its_end(self, fields: str) -> None:
        """The first took minutes, for each page and each turn of its workspace."""
        began = time.process_time()
        assert not matter(fields).is_usable
        assert time.process_time() - began < 2

    def test_a_server_that_is_written_out_is_named_with_all_of_its_hash(self) -> None:
        """With the first 64 bits of it, one with another command and the same name took an hour to find."""
        (server,) = matter("mcpServers: {almanac: {command: ls}}").wanted.servers
        name, _, digest = server.partition("=")
        assert (name, len(digest)) == ("almanac", 64)

    def test_what_is_wrong_is_told_from_above_down(self) -> None:
        found = matter("max_turns: many\ntrust: valut\nschedule: daily\nkind: gardener")
        assert [each.line for each in found.problems] == [2, 3, 4, 5]

    @pytest.mark.parametrize(
        ("fields", "line", "field", "said"),
        [
            ("name: G\ntools: [Read, Glop]", 3, "tools", "'Glop' is no tool here"),
            ("tools: Read, grep", 2, "tools", "Is Grep meant?"),
            ("agent:\n  permissions:\n    tools:\n    - Fly", 5, "agent.permissions.tools", "There are Read"),
            ("name: G\nwrite_permission: []", 3, "write_permission", "Is write_permissions meant?"),
            ("Tools: [Read]", 2, "Tools", "Is tools meant?"),
            ("agent:\n  permissions:\n    writes: []", 4, "writes", "Is write meant?"),
        ],
    )
    def test_what_counts_for_nothing_and_was_surely_meant_is_pointed_out(
        self, fields: str, line: int, field: str, said: str
    ) -> None:
        found = matter(fields)
        assert found.is_usable, "other programs keep fields of theirs there"
        (doubt,) = found.all_problems
        assert (doubt.line, doubt.field) == (line, field)
        assert said in doubt.message

    def test_what_other_programs_keep_there_is_left_alone(self) -> None:
        fields = "mode: subagent\ncolor: green\ntags: [garden]\ntools: [Read, mcp__almanac__get]"
        assert matter(fields).all_problems == ()

    @override_settings(PARACHUTE_MODELS=["sonnet", "claude-opus-4-1"])
    @pytest.mark.parametrize(
        ("model", "is_allowed"),
        [
            ("sonnet", True),
            ("claude-sonnet-4-20250514", True),
            ("claude-3-5-sonnet-latest", True),
            ("claude-opus-4-1", True),
            ("claude-opus-4-5", False),
            ("sonnet-of-somebody-else", False),
            ("gpt-5", False),
        ],
    )
    def test_a_short_name_allows_its_family_and_a_model_outside_is_an_error_on_its_field(
        self, model: str, is_allowed: bool
    ) -> None:
        found = matter(f"name: G\nmodel: {model}")
        assert found.is_usable, "it runs with the workspace's"
        assert found.model == (model if is_allowed else "")
        assert [(each.line, each.field) for each in found.all_problems] == (
            [] if is_allowed else [(3, "model")]
        )


class TestAVault:
    def test_each_folder_is_read_and_one_file_stops_no_other(self, vault: Path, agents: Path) -> None:
        (agents / "Head Gardener.md").write_text("---\nname: Head\n---\n")
        (agents / "broken.md").write_text("---\nmodel: [a\n---\n")
        (agents / "README.md").write_text("# How we write agents\n")
        (vault / ".agents").mkdir()
        (vault / ".agents" / "reader.md").write_text("---\nname: Reader\n---\n")
        found = by_path(vault)
        assert {path: each.slug for path, each in found.items() if each.is_usable} == {
            "Agents/Head Gardener.md": "head-gardener",
            ".agents/reader.md": "reader",
        }
        assert problem(found["Agents/broken.md"])[0] == 2

    def test_a_change_is_seen_at_the_next_look(self, agents: Path, vault: Path) -> None:
        file = agents / "gardener.md"
        for name in ("One", "Two", "Six"):
            file.write_text(f"---\nname: {name}\n---\n")
            assert [each.name for each in files.read_all(vault)] == [name]
        file.unlink()
        assert files.read_all(vault) == []

    @pytest.mark.parametrize("name", ["a\nb", "\u202egnp", "a" * 250, "a b&c", "..\udcff", "-" * 9 + "_"])
    def test_a_name_that_no_agent_can_have_is_refused_by_that_name(
        self, name: str, agents: Path, vault: Path
    ) -> None:
        (agents / f"x{name}.md").write_text("---\nname: G\n---\n")
        (agents / "good.md").write_text("---\nname: G\n---\n")
        found = {each.slug: each for each in files.read_all(vault)}
        assert found["good"].is_usable
        assert "file's name" in found[""].problems[0].message
        found[""].problems[0].message.encode()  # it can be sent

    def test_of_two_with_one_slug_the_second_is_told_of_the_first(self, agents: Path, vault: Path) -> None:
        composed, apart = (unicodedata.normalize(form, "Gärtner.md") for form in ("NFC", "NFD"))
        for name in {composed, apart}:
            (agents / name).write_text("---\nname: G\n---\n")
        if len(os.listdir(agents)) == 1:
            pytest.skip("this disk knows one form of a name only")
        good, refused = files.read_all(vault)
        assert (good.slug, refused.slug) == ("gärtner", "")
        assert f"{good.path} is called gärtner already" in refused.problems[0].message

    def test_a_link_is_not_followed(self, agents: Path, vault: Path, tmp_path: Path) -> None:
        secret = tmp_path / "secret.md"
        secret.write_text("---\nname: Secret\n---\nsecret words")
        (agents / "linked.md").symlink_to(secret)
        (vault / ".agents").symlink_to(tmp_path)
        (found,) = files.read_all(vault)
        assert "links are not followed" in found.problems[0].message
        assert "secret" not in found.text

    def test_a_folder_and_a_file_without_an_end_are_told(self, agents: Path, vault: Path) -> None:
        (agents / "folder.md").mkdir()
        os.mkfifo(agents / "pipe.md")
        (agents / "long.md").write_text("---\nname: G\n---\n" + "x" * files.LARGEST)
        assert [each.is_usable for each in files.read_all(vault)] == [False] * 3

    def test_what_is_beyond_the_most_is_told_once(
        self, agents: Path, vault: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A line for each of 10,000 files was 3 MB, for each look at the list."""
        monkeypatch.setattr(files, "MOST_FILES", 2)
        for name in "abcde":
            (agents / f"{name}.md").write_text("---\nname: G\n---\n")
        *good, last = files.read_all(vault)
        assert [each.slug for each in good] == ["a", "b"]
        assert (last.slug, last.path) == ("", "Agents")
        assert "3 of them were not read, from c.md on" in last.problems[0].message


class TestRights:
    BASE = Rights(
        tools=("Read", "Write"), write=("Garden/**",), servers=("almanac",), budget=1.0, trust="vault"
    )

    @pytest.mark.parametrize(
        ("change", "waits"),
        [
            ({"tools": ("Read",)}, []),
            ({"tools": ("Read", "Bash")}, ["tools"]),
            ({"tools": None}, ["tools"]),
            ({"write": ("Garden/Beds/**",)}, []),
            ({"write": ("Garden/*.md",)}, ["write"]),
            ({"write": ("Plans/**",)}, ["write"]),
            ({"write": None}, ["write"]),
            ({"write": ()}, []),
            ({"trust": "sandboxed"}, []),
            ({"trust": None}, ["trust"]),
            ({"trust": "full"}, ["trust"]),
            ({"servers": ("almanac=0123",)}, ["servers"]),
            ({"budget": 0.5}, []),
            ({"budget": None}, ["budget"]),
            ({"kind": "orchestrator"}, ["kind"]),
            ({"schedule": "0 7 * * *"}, ["schedule"]),
            ({"spawn": ("reader",)}, ["spawn"]),
            ({"bash": ("git status",)}, ["bash"]),
        ],
    )
    def test_what_is_less_counts_and_what_is_more_waits(
        self, change: dict[str, object], waits: list[str]
    ) -> None:
        wanted = Rights(**{**self.BASE.as_json(), **change})
        wanted = Rights.of_json(wanted.as_json())
        assert self.BASE.beyond(wanted) == waits
        counts = self.BASE.narrowed(wanted)
        assert self.BASE.beyond(counts) == []
        if not waits:
            assert counts == wanted

    def test_a_new_file_that_asks_for_less_than_the_default_waits_for_nobody(self) -> None:
        wanted = matter("tools: [Read]\nwrite_permissions: ['Garden/**']\ntrust: sandboxed").wanted
        assert Rights().beyond(wanted) == []
        assert Rights().narrowed(wanted) == wanted
