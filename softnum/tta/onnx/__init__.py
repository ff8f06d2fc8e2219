"""Networks from ONNX files, as workloads of a training iteration or of inference (extra ``onnx``).

What a graph computes is counted from its shapes alone: weights may be missing. Which operators are known, and what
their work is, say `softnum.tta.onnx.products`, `elementwise` and `layers`; any other is an error that names it.
"""

from softnum.tta.onnx.files import dynamic_dims
from softnum.tta.onnx.graph import Graph, read_onnx

__all__ = ["Graph", "dynamic_dims", "read_onnx"]
