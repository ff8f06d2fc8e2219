"""Chakra execution traces: what each rank of a job computes and sends, for simulators of whole systems."""
