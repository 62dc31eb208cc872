"""What the server itself does not read out of a vault, for its index and its pages. The rules are an app's
above, which puts them in here: a path by its names from the vault's root. Without any, all is closed."""

from collections.abc import Callable, Sequence

rules: list[Callable[[Sequence[str]], bool]] = []
secrets: list[Callable[[Sequence[str]], bool]] = []  # of these alone: what no agent reads


def is_closed(names: Sequence[str]) -> bool:
    return not rules or any(closes(names) for closes in rules)


def is_secret(names: Sequence[str]) -> bool:
    return not secrets or any(holds(names) for holds in secrets)
