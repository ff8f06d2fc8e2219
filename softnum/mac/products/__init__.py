"""Matrix products, convolutions and sums under a unit: definitions and fast paths."""
