"""Operations as bit-vector circuits, and the proof that a design computes them.

>>> from softnum.vectors import VectorSpec
>>> from softnum.vectors.formal import define, evaluate
>>> circuit = define(VectorSpec.make("multiply", "e4m3fn"))
>>> {name: hex(codes[0]) for name, codes in evaluate(circuit, {"a": [0x3C], "b": [0x43]}).items()}
{'result': '0x48', 'flags': '0x1'}
"""

from softnum.vectors.formal.circuit import Bits, Circuit
from softnum.vectors.formal.definition import DEFINED, define
from softnum.vectors.formal.evaluation import evaluate
from softnum.vectors.formal.export import EXPORTS, export
from softnum.vectors.formal.netlist import Design, read_design
from softnum.vectors.formal.proof import METHODS, Proof, prove
from softnum.vectors.formal.solvers import SOLVERS

__all__ = [
    "DEFINED", "EXPORTS", "METHODS", "SOLVERS", "Bits", "Circuit", "Design", "Proof", "define",
    "evaluate", "export", "prove", "read_design",
]  # fmt: skip
