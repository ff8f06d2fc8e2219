"""Traces of units step by step, and probes of operations."""
