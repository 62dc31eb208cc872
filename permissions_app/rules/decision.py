"""What the gate answers."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


@dataclass(frozen=True)
class Decision:
    """A verdict, the rule that gave it, and a sentence for the person and the model.

    The reason says what happened and who may change it. It never repeats what the model sent:
    that may be a secret, a megabyte, or text that no log can hold.
    """

    verdict: Verdict
    rule: str
    reason: str
    pattern: str = ""  # that a person gave, and that covers the call


def allow(rule: str, reason: str, pattern: str = "") -> Decision:
    return Decision(Verdict.ALLOW, rule, reason, pattern)


def deny(rule: str, reason: str) -> Decision:
    return Decision(Verdict.DENY, rule, reason)


def ask(rule: str, reason: str) -> Decision:
    return Decision(Verdict.ASK, rule, reason)
