"""The steps of each family of units."""
