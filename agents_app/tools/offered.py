"""The tools of the CLI that agents are offered."""

OFFERED = (
    *("Read", "Write", "Edit", "NotebookEdit", "Glob", "Grep", "Bash"),
    *("Task", "TodoWrite", "WebSearch", "AskUserQuestion", "Skill"),
    "WebFetch",  # where it has a network
)
