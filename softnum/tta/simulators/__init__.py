"""Simulators that softnum drives, each in an environment of its own."""
