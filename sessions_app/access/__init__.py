"""Who is calling, and what they may see: workspaces, members, keys, sign-in links and `Caller`."""
