"""What a payload does to the tail of its session: a delta lengthens it, the finished block takes it away."""

from sessions_app.bus.base import Payload

LIVES = 3_600  # seconds; a tail that nobody ends any more goes away by itself
ENDS_A_TAIL = frozenset({"text", "thinking", "session", "done", "aborted", "error", "typed_error"})


def is_delta(payload: Payload) -> bool:
    return "delta" in payload


def ends(payload: Payload) -> bool:
    return not is_delta(payload) and payload.get("type") in ENDS_A_TAIL


def head(delta: Payload) -> Payload:
    """What all deltas of one block have in common."""
    return {key: value for key, value in delta.items() if key not in ("delta", "offset")}


def joined(head_of_block: Payload, text: str) -> Payload:
    return {**head_of_block, "offset": 0, "delta": text}
