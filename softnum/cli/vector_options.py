"""The options that ``softnum vectors generate`` and ``check`` share: what the vectors are of."""

from dataclasses import dataclass
from typing import Annotated

import typer

from softnum.cli.vector_arguments import format_of, formats_of, given, space_of
from softnum.ops.arithmetic import CODE_OPERATIONS

__all__ = [
    "NO_BOXES", "Case", "Dialect", "Formats", "LaneCount", "LaneFlags", "Length", "Mask", "NanBox", "Op",
    "OperationOptions", "Overflow", "ResultFormat", "Rounding", "ScalarB", "Shape", "StochasticBits", "UnitOption",
    "VectorOptions", "WithC", "WordBits",
]  # fmt: skip

Op = Annotated[
    str | None,
    typer.Option(
        help=f"Operation: {', '.join(CODE_OPERATIONS)}, to_integer, from_integer, "
        "compare_{equal,less,less_equal} and each with _signaling, classify, sign_{copy,negate,xor}, fmsub, fnmadd, "
        "fnmsub; another name of one (softnum formats --names), or "
        "a function of TestFloat's, which states the formats: f32_mulAdd; of a unit: dot, mac, gemm. "
        "check: all, where lines of fptest say it."
    ),
]
Formats = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="The operands' format, or one for each, separated by commas; FILE.py:NAME is a user-defined one.",
    ),
]
ResultFormat = Annotated[
    str | None, typer.Option(help="The result's format, where it is another one; convert's target.")
]
Rounding = Annotated[
    str | None,
    typer.Option(
        help="Rounding mode, full or short: rne rna rtz rup rdn rto sr; or another's name (softnum formats --names).  "
        "[default: nearest_even]"
    ),
]
Overflow = Annotated[
    str | None,
    typer.Option(
        help="infinity, saturate, saturate_finite, wrap or p3109_v3_2_1.  [default: infinity; fixed point: saturate]"
    ),
]
Tininess = Annotated[
    str | None, typer.Option(help="When tininess (underflow) is detected: after or before rounding.  [default: after]")
]
Case = Annotated[
    list[str] | None,
    typer.Option(
        metavar="OPTIONS",
        help='For a mixed file: one operation with its options, as "--op fma --format binary32 --rounding rup"; '
        "repeat it (with --lanes and --mask, words of lanes). Or --op add,multiply --rounding rne,rup --format "
        "binary16+binary32, in a case or without: every combination.",
    ),
]
#: why `NanBox` is refused elsewhere
NO_BOXES = (
    "--nan-box is of mixed files, whose columns are as wide as the widest format (--case), and of words (--lanes)"
)
NanBox = Annotated[
    bool,
    typer.Option(
        "--nan-box",
        help=("For a mixed file, and with --lanes: set the bits above a float to ones if its column is wider."),
    ),
]
Dialect = Annotated[
    str | None,
    typer.Option(
        help="The file's dialect: softnum (TestFloat's text with a header), testfloat (without), readmemh, readmemb, "
        "fptest, csv, jsonl or npz.  [default: by the file's ending, .gz and .xz aside; else by its first bytes]"
    ),
]
StochasticBits = Annotated[int | None, typer.Option(help="r: random bits of a stochastic rounding.  [default: 32]")]
Nan = Annotated[
    str | None,
    typer.Option(
        "--nan",
        help=(
            "Which machine's NaN is delivered: canonical, riscv, arm_default, x86, arm, cuda; for to_integer, which "
            "machine's invalid results.  [default: canonical; riscv]"
        ),
    ),
]
Exact = Annotated[
    bool | None,
    typer.Option(
        "--exact/--silent",
        " /--notexact",
        help=(
            "For round_to_integral and to_integer: whether a value that is not an integer raises inexact.  [default: "
            "exact]"
        ),
    ),
]
FlushInputs = Annotated[
    bool | None, typer.Option("--flush-inputs/--no-flush-inputs", help="Subnormal operands read as zeros (DAZ).")
]
FlushResults = Annotated[
    str | None,
    typer.Option(
        help="Results that are tiny before or after rounding, or subnormal once rounded, become zeros (FTZ): before, "
        "after (x86), subnormal, arm (before, with underflow alone: FPCR.FZ)."
    ),
]
Minmax = Annotated[
    str | None,
    typer.Option(
        help=(
            "Which definition of minimum and maximum: ieee2019, ieee2008 (minNum), riscv, arm, x86 (MINSS), cuda.  "
            "[default: ieee2019]"
        )
    ),
]
ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile",
        help=(
            "A machine whose rules apply unless another option states them (--nan, --tininess, --minmax, results of "
            "classify): riscv, arm, x86, ieee, cuda."
        ),
    ),
]
NoNan = Annotated[bool, typer.Option("--no-nan", help="Leave out operands that are NaN.")]
NoInf = Annotated[bool, typer.Option("--no-inf", help="Leave out infinite operands.")]
NoSubnormal = Annotated[bool, typer.Option("--no-subnormal", help="Leave out subnormal operands.")]
Exponents = Annotated[
    str | None,
    typer.Option(
        metavar="LOW:HIGH", help="Only operands with magnitudes from 2^LOW to below 2^(HIGH+1) (--exponents=-4:4)."
    ),
]
Only = Annotated[
    str | None,
    typer.Option(
        help=(
            "Only vectors whose results meet all of these conditions, separated by commas: ties, overflow, underflow, "
            "subnormal-result, exact, cancellation or cancellation:N (N leading places are lost; 2)."
        )
    ),
]
UnitOption = Annotated[
    str | None,
    typer.Option(
        "--unit", help="For dot, mac, gemm: a name that `softnum units` lists, or an expression: MadUnit('e6m9', ...)."
    ),
]
Length = Annotated[
    int | None, typer.Option(help=("For dot: products in a sum; for mac: steps in a sequence.  [default: 16]"))
]
Shape = Annotated[str | None, typer.Option(help="For gemm: M,N,K.  [default: 4,4,8]")]
WithC = Annotated[
    bool | None, typer.Option("--with-c/--without-c", help="For dot, mac, gemm: whether sums start from a column C.")
]
LaneCount = Annotated[
    int | None, typer.Option("--lanes", help="SIMD: this many operations in a word, lane 0 in its low bits.")
]
WordBits = Annotated[
    int | None,
    typer.Option(help=("With --lanes: bits of a word, with zeros in unused lanes.  [default: what the lanes take]")),
]
ScalarB = Annotated[bool, typer.Option("--scalar-b", help="With --lanes: one operand b for all lanes.")]
Mask = Annotated[
    str | None,
    typer.Option(
        "--mask",
        help=(
            "With --lanes: add a column mask with a bit for each lane. An inactive lane (0) raises no flags and keeps "
            "the old value of the destination, which is a further column (keep), or is zero (zero)."
        ),
    ),
]
LaneFlags = Annotated[
    str | None, typer.Option(help="With --lanes: flags of all lanes combined (or), or of each lane.  [default: or]")
]


@dataclass(frozen=True)
class OperationOptions:
    """Options of a command about an operation, beside its name and what its results are restricted to."""

    fmt: Formats = None
    result_format: ResultFormat = None
    rounding: Rounding = None
    overflow: Overflow = None
    tininess: Tininess = None
    stochastic_bits: StochasticBits = None
    nan: Nan = None
    exact: Exact = None
    flush_inputs: FlushInputs = None
    flush_results: FlushResults = None
    minmax: Minmax = None
    profile: ProfileOption = None
    no_nan: NoNan = False
    no_inf: NoInf = False
    no_subnormal: NoSubnormal = False
    exponents: Exponents = None

    @property
    def restriction(self) -> str | None:
        """What results are restricted to."""
        return None

    def given(self) -> dict:
        """Those that are given, as keywords of ``VectorSpec.make``."""
        return given(
            fmt=formats_of(self.fmt), out_fmt=format_of(self.result_format), rounding=self.rounding,
            overflow=self.overflow, tininess=self.tininess, stochastic_bits=self.stochastic_bits, nan=self.nan,
            exact=self.exact, flush_inputs=self.flush_inputs, flush_results=self.flush_results, minmax=self.minmax,
            profile=self.profile,
            space=space_of(self.no_nan, self.no_inf, self.no_subnormal, self.exponents, self.restriction),
        )  # fmt: skip


@dataclass(frozen=True)
class VectorOptions(OperationOptions):
    """The same, and what results are restricted to."""

    only: Only = None

    @property
    def restriction(self) -> str | None:
        """What results are restricted to."""
        return self.only

    def of_each(self) -> dict:
        """What holds for each operation, mode and format of mixed vectors, as `softnum.cli.mixed.parts_of` takes it."""
        return {name: value for name, value in vars(self).items() if name not in ("fmt", "rounding", "result_format")}
