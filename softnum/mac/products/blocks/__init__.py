"""Products of block formats."""
