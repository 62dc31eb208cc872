"""MCP servers of a vault: what `.mcp.json` says (`files`, `entries`), what of it counts (`services`), what a
turn is given (`chosen`), in which form (`given`, `relayed`), and trying one (`trying`)."""
