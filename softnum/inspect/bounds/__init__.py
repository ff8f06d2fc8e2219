"""Error bounds of products under a unit."""
