"""What agents work with beside the CLI's own tools."""
