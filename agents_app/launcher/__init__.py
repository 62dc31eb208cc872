"""How an agent's process is started, and how it ends.

The worker gives the SDK `executable()` as its CLI and `orders_for()` as environment. What then runs
has the ordered environment and nothing of the worker's, is the first of its own session, and carries a
mark by which `end_everything()` finds it and all that it started.
"""

from agents_app.sandboxes.base import MARK

from .ended import end_everything, marked
from .orders import executable, new_mark, orders_for
from .still import standing_still

__all__ = ["MARK", "end_everything", "executable", "marked", "new_mark", "orders_for", "standing_still"]
