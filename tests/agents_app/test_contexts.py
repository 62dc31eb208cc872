"""What is put after the preset: the context files from the vault's root down to the working directory."""

import os
from pathlib import Path

import pytest

from agents_app.prompts.contexts import MOST_TOKENS, assemble, tokens_of


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    (tmp_path / "Garden/Beds").mkdir(parents=True)
    return tmp_path


def test_without_files_there_is_nothing(vault: Path) -> None:
    context = assemble(vault, vault)
    assert (context.text, context.files, context.tokens, context.truncated) == ("", (), 0, False)


def test_the_deepest_comes_last(vault: Path) -> None:
    for folder, text in (
        (".", "Of the vault."),
        ("Garden", "Of the garden."),
        ("Garden/Beds", "Of the beds."),
    ):
        (vault / folder / "CLAUDE.md").write_text(text)
    context = assemble(vault, vault / "Garden/Beds")
    assert context.files == ("CLAUDE.md", "Garden/CLAUDE.md", "Garden/Beds/CLAUDE.md")
    places = [context.text.index(f"Of the {place}.") for place in ("vault", "garden", "beds")]
    assert places == sorted(places)


def test_what_lies_below_or_beside_the_directory_is_not_in_it(vault: Path) -> None:
    (vault / "Garden/Beds/CLAUDE.md").write_text("below")
    (vault / "Kitchen").mkdir()
    (vault / "Kitchen/CLAUDE.md").write_text("beside")
    assert assemble(vault, vault / "Garden").files == ()


def test_agents_md_goes_before_claude_md_and_an_empty_one_does_not(vault: Path) -> None:
    (vault / "CLAUDE.md").write_text("claude")
    (vault / "AGENTS.md").write_text("agents")
    assert assemble(vault, vault).files == ("AGENTS.md",)
    (vault / "AGENTS.md").write_text("")
    assert assemble(vault, vault).files == ("CLAUDE.md",)


def test_an_at_path_stays_text(vault: Path) -> None:
    (vault / ".env").write_text("KEY=never-to-be-seen")
    (vault / "CLAUDE.md").write_text("See @.env and @/etc/hostname.")
    context = assemble(vault, vault)
    assert "See @.env and @/etc/hostname." in context.text
    assert "never-to-be-seen" not in context.text


def test_a_directory_outside_the_vault_has_the_vaults_own(
    vault: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "CLAUDE.md").write_text("outside")
    (vault / "CLAUDE.md").write_text("inside")
    assert assemble(vault, outside).files == ("CLAUDE.md",)
    assert "outside" not in assemble(vault, outside).text


@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md"])
def test_a_link_is_not_followed(vault: Path, name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    secret = tmp_path_factory.mktemp("outside") / "secret"
    secret.write_text("never-to-be-seen")
    (vault / name).symlink_to(secret)
    assert assemble(vault, vault).text == ""


def test_a_folder_that_became_a_link_is_not_followed(
    vault: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "CLAUDE.md").write_text("never-to-be-seen")
    (vault / "Sheds").symlink_to(outside)
    assert assemble(vault, vault / "Sheds").text == ""


def test_a_pipe_keeps_nobody_waiting(vault: Path) -> None:
    os.mkfifo(vault / "CLAUDE.md")
    assert assemble(vault, vault).files == ()


def test_a_vault_that_is_gone_has_no_context(vault: Path) -> None:
    assert assemble(vault / "gone", vault / "gone").text == ""


def test_what_is_too_long_is_cut_and_says_so(vault: Path) -> None:
    (vault / "CLAUDE.md").write_text("ä" * MOST_TOKENS * 3)
    (vault / "Garden/CLAUDE.md").write_text("ö" * MOST_TOKENS * 3)
    (vault / "Garden/Beds/CLAUDE.md").write_text("z")
    context = assemble(vault, vault / "Garden/Beds")
    assert context.truncated
    assert (context.text.count("ä"), context.text.count("ö")) == (MOST_TOKENS * 3, MOST_TOKENS)
    assert "[Cut here" in context.text
    assert context.files == ("CLAUDE.md", "Garden/CLAUDE.md")
    assert context.tokens == tokens_of(context.text)


def test_bytes_that_are_no_text_are_marked(vault: Path) -> None:
    (vault / "CLAUDE.md").write_bytes(b"caf\xe9")
    assert "caf\ufffd" in assemble(vault, vault).text


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2)])
def test_a_token_is_four_characters_begun(text: str, tokens: int) -> None:
    assert tokens_of(text) == tokens
