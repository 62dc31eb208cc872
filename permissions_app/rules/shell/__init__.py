"""What a Bash command does, as far as it can be read before it runs.

`parse` gives a tree, `words` takes off quotes and expands, `walk` finds every command in the tree,
`redirections` which files it opens and what it is fed, `programs` knows what a command does with its words,
`danger` which of them are the worst, `reading` is what comes out.
"""

from permissions_app.rules.shell.read import read_command
from permissions_app.rules.shell.reading import Command, Outcome, Reading

__all__ = ["Command", "Outcome", "Reading", "read_command"]
