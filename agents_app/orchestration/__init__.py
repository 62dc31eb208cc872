"""Agents that run agents: sessions that start others, and hear from the platform what became of them."""
