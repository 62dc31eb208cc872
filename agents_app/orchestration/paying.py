from sessions_app.models import Session


def may_pay_for(parent: Session) -> str:
    """Whether a session that this one starts may be paid for: why not, or nothing. Asked at each spawn, with
    the parent's row locked, so that two at once do not spend the same money."""
    return ""
