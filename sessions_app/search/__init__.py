"""Finding what was said and what is written in the vault: what is indexed, how, and who finds it."""
