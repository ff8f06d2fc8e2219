"""Test vectors: operands, results and flags as text, made by softnum or judged by it.

>>> from softnum.vectors import generate
>>> block = next(generate("multiply", "e4m3fn", rounding="toward_zero"))
>>> len(block), block.result.dtype
(65536, dtype('uint8'))
"""

from softnum.vectors.checks.causes import CAUSES
from softnum.vectors.checks.checker import check
from softnum.vectors.checks.ci import junit_of, sarif_of
from softnum.vectors.checks.failures import Failure
from softnum.vectors.checks.freedom import PermittedReport, check_permitted
from softnum.vectors.checks.html import page_of
from softnum.vectors.checks.mixed_report import MixedReport
from softnum.vectors.checks.packed import PackedReport
from softnum.vectors.checks.report import CauseFound, CheckReport
from softnum.vectors.checks.suite import SuiteDifference, SuiteReport, check_suite
from softnum.vectors.files.dialects import DIALECTS, Dialect, open_reader
from softnum.vectors.files.text import Rows, TextLayout, VectorFileError, VectorReader
from softnum.vectors.files.writing import header_of, write
from softnum.vectors.model import ReferenceModel
from softnum.vectors.plans.coverage import Bins, Coverage
from softnum.vectors.plans.coverages import MixedCoverage, PackedCoverage, coverage_of
from softnum.vectors.plans.generator import Plan, generate, plan
from softnum.vectors.plans.mixed import MixedPlan, MixedSpec, mixed_plan
from softnum.vectors.plans.packed import Lanes, PackedPlan, PackedSpec, packed_plan
from softnum.vectors.plans.space import Space
from softnum.vectors.plans.spec import Block, Column, VectorSpec
from softnum.vectors.plans.unit_spec import UNIT_OPERATIONS, UnitSpec
from softnum.vectors.rom import ROM_FORMATS, Rom, make_rom, write_rom
from softnum.vectors.simulators import build_simulator_libraries

__all__ = [
    "CAUSES",
    "DIALECTS",
    "ROM_FORMATS",
    "UNIT_OPERATIONS",
    "Bins",
    "Block",
    "CauseFound",
    "CheckReport",
    "Column",
    "Coverage",
    "Dialect",
    "Failure",
    "Lanes",
    "MixedCoverage",
    "MixedPlan",
    "MixedReport",
    "MixedSpec",
    "PackedCoverage",
    "PackedPlan",
    "PackedReport",
    "PackedSpec",
    "PermittedReport",
    "Plan",
    "Rows",
    "ReferenceModel",
    "Rom",
    "Space",
    "SuiteDifference",
    "SuiteReport",
    "TextLayout",
    "UnitSpec",
    "VectorFileError",
    "VectorReader",
    "VectorSpec",
    "build_simulator_libraries",
    "check",
    "check_permitted",
    "check_suite",
    "coverage_of",
    "generate",
    "header_of",
    "junit_of",
    "open_reader",
    "make_rom",
    "mixed_plan",
    "packed_plan",
    "page_of",
    "plan",
    "sarif_of",
    "write",
    "write_rom",
]
