"""Units of real machines, by what makes them: the tables that `softnum.mac.presets` finds names in."""
