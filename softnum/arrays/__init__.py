"""Values and codes: conversions between them, and the arrays that hold codes with their format."""
