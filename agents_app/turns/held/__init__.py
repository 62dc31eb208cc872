"""Who holds a turn: the doorbell, the claim, the lease, and sessions that idle."""
