"""Disclosures: pages that state all of a unit, as data too, which are read back."""
