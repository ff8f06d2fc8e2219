"""How each kind of format encodes, decodes and rounds arrays."""
