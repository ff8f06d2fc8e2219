"""Which vectors: what they are of, operands, strata, coverage."""
