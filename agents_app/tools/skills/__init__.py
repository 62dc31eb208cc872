"""Skills of a vault: listed, enabled, uploaded, and handed to the CLI as a plugin that we write."""
