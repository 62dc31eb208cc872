"""What the server itself does not read out of a vault, for its index and its pages. The rules are an app's
above, which puts them in here: a path by its names from the vault's root. Without any, all is closed."""

from collections.abc import Callable, Sequence

rules: list[Callable[[Sequence[str]], bool]] = []


def is_closed(names: Sequence[str]) -> bool:
    return not rules or any(closes(names) for closes in rules)
