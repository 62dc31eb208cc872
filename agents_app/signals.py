"""What the apps above may want to know. Sent after commit, and again until every receiver has taken it: so a
receiver does the same whether it hears of a turn once or twice, and is quick: it may be in a web process."""

from django.dispatch import Signal

turn_finished = Signal()  # `turn`, with its session and workspace: done, stopped or failed
