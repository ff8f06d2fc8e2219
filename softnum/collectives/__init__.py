"""Collectives as arithmetic: what all-reduce, reduce-scatter, all-gather and all-to-all of many ranks compute."""
