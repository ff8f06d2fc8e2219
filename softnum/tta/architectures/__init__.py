"""Networks as lists of layers, for questions of time, memory and energy alone: nothing here trains."""
