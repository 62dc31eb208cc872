"""What others may want to know."""

from django.dispatch import Signal

# `turn`, with its session and workspace: done, stopped or failed. Sent after commit, and again until every
# receiver has taken it: so a receiver does the same whether it hears of a turn once or twice, and is quick,
# since it may be in a web process.
turn_finished = Signal()

# `workspace`: a person accepted what the file of an agent there asks for. Part of the same transaction.
rights_accepted = Signal()
