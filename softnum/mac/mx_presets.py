"""Units of block formats by name, for `softnum.mac.presets`: what their standards fix, and what is chosen here."""

from __future__ import annotations

from softnum.formats.blocks import block_format_names
from softnum.mac.blocks import BlockDotUnit

__all__ = ["BLOCK_UNITS", "block_preset"]

#: Names of units, and of the block formats that they multiply.
BLOCK_UNITS = {("ocp_" if name.startswith("mx") else "") + name: name for name in block_format_names()}
_OCP = "OCP Microscaling Formats (MX) Specification v1.0"
_NVFP4 = "arXiv 2509.25149"


def block_preset(name: str) -> tuple[BlockDotUnit, dict]:
    """The unit of a name of `BLOCK_UNITS`, and for each property a (kind, source) pair of evidence."""
    made = BlockDotUnit("binary32", operand=BLOCK_UNITS[name])
    ocp = name.startswith("ocp_")
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
    return made, evidence
