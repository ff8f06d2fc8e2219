"""Training runs: the loop, its record, statistics and lock."""
