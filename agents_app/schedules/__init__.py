"""Agents that run when a clock says so: their files own the times, rows say what became of each."""
