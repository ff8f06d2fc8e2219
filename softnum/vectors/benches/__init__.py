"""Benches for designs in Verilog: ports, what each is for, and the files that drive them with softnum's vectors."""
