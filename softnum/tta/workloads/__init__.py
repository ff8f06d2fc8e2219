"""What an iteration consists of, and what it takes: time, memory, energy, network."""
