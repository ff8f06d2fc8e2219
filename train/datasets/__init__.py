"""Data sets, the files that they come from, and measures of what networks make of them."""
