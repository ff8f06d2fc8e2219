"""Record what this GPU's matrix instructions compute: ``python -m softnum.kernels.recording FOLDER``.

A row is d = a·b + c of one instruction, alone; in a chain of four, each d is the next one's c. `rows` draws their
operands, `tiles` lays them in registers, `device` computes them, `functions` does the same for functions of an element.
"""
