"""Whether a stranger's words look as if they were meant for an agent, and not for who reads them."""

import re

_SIGNS = re.compile(
    r"""
      \b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:previous|above|prior|earlier|all|your|instruction)
    | \b(?:system|developer)\s*(?:prompt|message|role)\b | ^\s*(?:system|assistant|developer)\s*:
    | \byou\s+are\s+(?:now|an?\s+(?:ai|agent|assistant))\b | \bact\s+as\b | \bpretend\b
    | \b(?:new|following)\s+instructions?\b | \bdo\s+not\s+(?:tell|ask|mention)\b
    | \bapprove\b.{0,30}\b(?:me|this|request|pairing)\b | \btrust[_ -]?level\b
    | \b(?:run|execute|delete|upload|send)\b.{0,40}\b(?:command|script|file|folder)s?\b
    | \b(?:secret|password|token|private\s+key)s?\b
    | \b(?:curl|wget|sudo|chmod|bash|powershell|rm\s+-rf)\b | \.env\b | \bid_rsa\b | \bapi[_ ]?key\b
    | </?[a-z_-]{3,}> | \[/?INST\] | <\|
    | [A-Za-z0-9+/]{80,}
    | [\u200b-\u200f\u202a-\u202e\u2060-\u206f\U000e0000-\U000e0fff]
    """,
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)


def looks_like_orders(text: str) -> bool:
    """A hint for a person, and no more: what is not hinted at may be meant so all the same."""
    return _SIGNS.search(text) is not None
