"""Units of papers and standards: what these fix, and what is chosen here.

Sources: Wang et al. 2018, "Training Deep Neural Networks with 8-bit Floating Point Numbers"; OCP Microscaling Formats
(MX) Specification v1.0; arXiv 2509.25149 (nvfp4).
"""

from __future__ import annotations

from functools import partial

from softnum.formats.blocks import block_format_names
from softnum.mac.blocks import BlockDotUnit
from softnum.mac.machines.preset import Evidence, Made, Preset
from softnum.mac.mad import MadUnit

__all__ = ["BLOCK_FORMATS", "PAPERS"]

_OCP = "OCP Microscaling Formats (MX) Specification v1.0"
_NVFP4 = "arXiv 2509.25149"


def _ibm_fp8_2018(output: None) -> Made:
    source = "Wang et al. 2018"
    return MadUnit("e6m9", operand="e5m2", chunk=64), {
        "operand": Evidence("published", f"FP8 (1, 5, 2): {source}"),
        "accumulator": Evidence("published", f"FP16 (1, 6, 9), within chunks and between them: {source}"),
        "chunk": Evidence("published", f"64, then the chunks' sums in turn: {source}"),
        "rounding": Evidence("published", f"to nearest in products of matrices: {source}; ties to even are modelled"),
        "products": Evidence("modelled", "exact before they are added: the source has one rounding in view, the sum's"),
        "special_values": Evidence("modelled", "biases, subnormals, infinities and NaN as in IEEE 754"),
    }


def _of_blocks(name: str, output: None) -> Made:
    """The unit of a block format."""
    ocp = name.startswith("mx")
    evidence = {
        "operand": ("published", f"elements and scales: {_OCP}, clauses 5.2 to 5.4" if ocp else f"nvfp4: {_NVFP4}"),
        "scales": (
            "published",
            f"a block's sum of products times the product of its two scales: {_OCP}, clause 6.1" if ocp
            else f"block scales within the sum, the arrays' scales after it: {_NVFP4}",
        ),
        "accumulator": ("modelled", "binary32, the usual one: the source leaves it to the implementation"),
        "inner": ("modelled", "the sum of a block is exact: the source leaves its precision to the implementation"),
        "rounding": ("modelled", "one rounding a block, to nearest even: the source leaves it to the implementation"),
        "order": ("modelled", "blocks in the order of K: the source leaves it to the implementation"),
    }  # fmt: skip
    return BlockDotUnit("binary32", operand=name), {what: Evidence(*told) for what, told in evidence.items()}


PAPERS = {"ibm_fp8_2018": Preset(_ibm_fp8_2018)}
BLOCK_FORMATS = {
    ("ocp_" if name.startswith("mx") else "") + name: Preset(partial(_of_blocks, name)) for name in block_format_names()
}
