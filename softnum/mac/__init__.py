"""Units: how products are summed, by which order, format and rounding, and presets of real ones."""
