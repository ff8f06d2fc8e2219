"""What the families of softnum.mac say of their units on a disclosure: importing this registers it."""

from softnum.inspect.disclosure.families import blocks, exact, fused, mad

__all__ = ["blocks", "exact", "fused", "mad"]
