"""What the process of the curator's tools is handed in its environment. It imports this, and nothing else."""

MODULE = "curator_app.mcp_server"
ADDRESS, TOKEN = "PARACHUTE_CURATOR_ADDRESS", "PARACHUTE_CURATOR_TOKEN"
