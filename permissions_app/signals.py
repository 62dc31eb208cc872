"""What the apps above may want to know. Sent inside of the transaction: what they write is part of it."""

from django.dispatch import Signal

granted_late = Signal()  # `request`, `caller`: the turn that asked was told "not now"
grant_decided = Signal()  # `request`, a GrantRequest: its agent was told "pending"
