"""The runtime that runs Claude: the only importer of `claude_agent_sdk`."""
