"""What others call softnum's formats, rounding modes and operations: one table, and how a name is looked up in it.

An alias stands for one meaning, whose own name softnum goes on with. A name that has several meanings outside, or one
that softnum has not, is no alias: `refused` says what to write instead.

Sources: Berkeley TestFloat 3e (testfloat_gen, standardFunctionInfos.c); IEEE Std 754-2019 clauses 4.3, 5 and 9.6;
RISC-V unprivileged ISA, frm; Arm Architecture Reference Manual, FPCR.RMode and FCVT; PTX ISA and CUDA's type casting
intrinsics; ISO C, fenv.h; IEEE P3109 interim report v4.0; the documentation of NumPy, ml_dtypes and PyTorch; FPgen's
test suite.
"""

from __future__ import annotations

import difflib
import re
from typing import NamedTuple

__all__ = [
    "ALIASES", "INTEGERS", "Alias", "Function", "format_alias", "function_of", "integer_named", "near",
    "operation_alias", "refused", "rounding_alias",
]  # fmt: skip


class Alias(NamedTuple):
    """A name that others have: of what ``kind`` ("format", "rounding" or "operation"), softnum's own name for what it
    means, and whose it is."""

    alias: str
    kind: str
    name: str
    whose: str


def _aliases(kind: str, table: dict[str, dict[str, str]]):
    for name, owners in table.items():
        for whose, names in owners.items():
            for alias in names.split():
                yield Alias(alias, kind, name, whose)


_FORMATS = {
    "binary16": {"NumPy": "float16", "C, NumPy, PyTorch": "half", "TestFloat": "f16", "FPgen": "b16", "CUDA": "fp16"},
    "binary32": {"NumPy": "float32 single", "TestFloat": "f32", "FPgen": "b32", "CUDA": "fp32"},
    "binary64": {"NumPy": "float64 double", "TestFloat": "f64", "FPgen": "b64", "CUDA": "fp64"},
    "binary128": {"TestFloat": "f128", "FPgen": "b128", "GCC, C": "_Float128 __float128", "IBM, others": "fp128 quad"},
    "x87_extended": {"TestFloat": "extF80", "GCC": "__float80", "LLVM": "x86_fp80", "others": "float80"},
    "bfloat16": {"TestFloat, Arm": "bf16"},
    "tf32": {"CUDA": "tensorfloat32"},
    "e5m2": {"ml_dtypes": "float8_e5m2"},
    "e4m3": {"ml_dtypes": "float8_e4m3"},
    "e3m4": {"ml_dtypes": "float8_e3m4"},
    "e4m3fn": {"ml_dtypes": "float8_e4m3fn"},
    "e4m3fnuz": {"ml_dtypes": "float8_e4m3fnuz"},
    "e5m2fnuz": {"ml_dtypes": "float8_e5m2fnuz"},
    "e4m3b11fnuz": {"ml_dtypes": "float8_e4m3b11fnuz"},
    "e8m0fnu": {"ml_dtypes": "float8_e8m0fnu", "OCP MX": "e8m0"},
    "e3m2fn": {"ml_dtypes": "float6_e3m2fn"},
    "e2m3fn": {"ml_dtypes": "float6_e2m3fn"},
    "e2m1fn": {"ml_dtypes": "float4_e2m1fn", "PyTorch": "float4_e2m1fn_x2"},
}
_ROUNDINGS = {
    "nearest_even": {
        "TestFloat": "near_even", "IEEE 754": "roundTiesToEven", "RISC-V": "RNE", "Arm, CUDA": "RN",
        "C": "FE_TONEAREST", "P3109": "NearestTiesToEven", "OpenCL": "RTE",
    },
    "nearest_away": {
        "TestFloat": "near_maxMag", "IEEE 754": "roundTiesToAway", "RISC-V": "RMM", "Arm": "RA", "PTX": "RNA",
        "P3109": "NearestTiesToAway",
    },
    "toward_zero": {
        "TestFloat": "minMag", "IEEE 754": "roundTowardZero", "RISC-V": "RTZ", "Arm, CUDA": "RZ", "C": "FE_TOWARDZERO",
        "P3109": "TowardZero",
    },
    "up": {
        "TestFloat": "max", "IEEE 754": "roundTowardPositive", "RISC-V": "RUP", "Arm, PTX": "RP", "CUDA": "RU",
        "C": "FE_UPWARD", "P3109": "TowardPositive", "OpenCL": "RTP",
    },
    "down": {
        "TestFloat": "min", "IEEE 754": "roundTowardNegative", "RISC-V": "RDN", "Arm, PTX": "RM", "CUDA": "RD",
        "C": "FE_DOWNWARD", "P3109": "TowardNegative",
    },
    "to_odd": {"TestFloat": "odd", "softnum": "rto", "P3109": "ToOdd"},
    "stochastic": {"softnum": "sr", "gfloat": "stochastic_fastest", "P3109": "StochasticA"},
    "stochastic_fast": {"P3109": "StochasticB"},
    "stochastic_even": {"P3109": "StochasticC"},
}  # fmt: skip
_OPERATIONS = {
    "add": {"IEEE 754": "addition"},
    "subtract": {"TestFloat": "sub", "IEEE 754": "subtraction"},
    "multiply": {"TestFloat": "mul", "IEEE 754": "multiplication"},
    "divide": {"TestFloat": "div", "IEEE 754": "division"},
    "remainder": {"TestFloat": "rem"},
    "sqrt": {"IEEE 754": "squareRoot"},
    "fma": {"TestFloat": "mulAdd", "IEEE 754": "fusedMultiplyAdd"},
    "round_to_integral": {"TestFloat": "roundToInt", "IEEE 754": "roundToIntegralExact"},
    "convert": {"IEEE 754": "convertFormat"},
    "compare_quiet_equal": {"TestFloat": "eq", "IEEE 754": "compareQuietEqual"},
    "compare_quiet_less": {"TestFloat": "lt_quiet", "IEEE 754": "compareQuietLess"},
    "compare_quiet_less_equal": {"TestFloat": "le_quiet", "IEEE 754": "compareQuietLessEqual"},
    "compare_signaling_equal": {"TestFloat": "eq_signaling", "IEEE 754": "compareSignalingEqual"},
    "compare_signaling_less": {"TestFloat": "lt", "IEEE 754": "compareSignalingLess"},
    "compare_signaling_less_equal": {"TestFloat": "le", "IEEE 754": "compareSignalingLessEqual"},
    "negate": {"C, NumPy": "neg"},
    "absolute": {"C, NumPy": "abs"},
    "copysign": {"IEEE 754": "copySign"},
    "minimum": {"NumPy": "min"},
    "maximum": {"NumPy": "max"},
    "minimum_number": {"IEEE 754": "minimumNumber"},
    "maximum_number": {"IEEE 754": "maximumNumber"},
    "next_up": {"IEEE 754": "nextUp"},
    "next_down": {"IEEE 754": "nextDown"},
    "logb": {"IEEE 754": "logB"},
    "reciprocal": {"P3109": "Recip"},
    "expm1": {"P3109": "ExpMinusOne"},
    "log1p": {"P3109": "LogOnePlus", "IEEE 754": "logp1"},
    "rsqrt": {"IEEE 754": "rSqrt"},
    "acos": {"P3109": "ArcCos"},
    "acosh": {"P3109": "ArcCosh"},
    "acospi": {"P3109": "ArcCosPi"},
    "asin": {"P3109": "ArcSin"},
    "asinh": {"P3109": "ArcSinh"},
    "asinpi": {"P3109": "ArcSinPi"},
    "atan": {"P3109": "ArcTan"},
    "atan2": {"P3109": "ArcTan2"},
    "atan2pi": {"P3109": "ArcTan2Pi"},
    "atanh": {"P3109": "ArcTanh"},
    "atanpi": {"P3109": "ArcTanPi"},
    "compound": {"C": "compoundn"},
}

#: Every alias, in the order in which they are listed.
ALIASES: tuple[Alias, ...] = (
    *_aliases("format", _FORMATS),
    *_aliases("rounding", _ROUNDINGS),
    *_aliases("operation", _OPERATIONS),
)

_BY_KIND: dict[str, dict[str, str]] = {"format": {}, "rounding": {}, "operation": {}}
for _alias in ALIASES:
    _BY_KIND[_alias.kind][_alias.alias.lower()] = _alias.name

#: The integer types that float results are converted to, by TestFloat's name: (bits, signed).
INTEGERS: dict[str, tuple[int, bool]] = {
    f"{sign}{bits}": (bits, sign == "i") for sign in ("i", "ui") for bits in (8, 16, 32, 64)
}
_INTEGER = re.compile(r"(i|ui|u|int|uint)(\d{1,2})")
_PREFIX = re.compile(r"(?:torch|numpy|np|ml_dtypes)\.(?=.)")

# What is no alias, and why: names of several meanings, and of what softnum has not.
_JAMMED = (
    "every mode keeps the values of a format, and it would not: softnum.ops.jam(x, fmt) sets the last bit of every "
    "code; 'to_odd' sets that of inexact results alone"
)
_LONG_DOUBLE = "NumPy and C mean x87_extended by it on x86, binary128 or binary64 on other machines: state which"
_REFUSED = {
    "format": {
        "float": "C and PyTorch mean binary32 by it, Python binary64",
        "fp8": "did you mean e5m2 or e4m3fn",
        "float8": "did you mean e5m2 or e4m3fn",
        "fp6": "did you mean e3m2fn or e2m3fn",
        "fp4": "did you mean e2m1fn",
        **dict.fromkeys(("float128", "longdouble", "long double", "float96"), _LONG_DOUBLE),
    },
    "rounding": {
        "nearest": "did you mean 'nearest_even'",
        "even": "did you mean 'nearest_even'",
        "round": "did you mean 'nearest_even'",
        "rtn": "OpenCL means 'down' by it, papers on quantization 'nearest_even'",
        "away": "IEEE's ties to away are 'nearest_away'; 'away_from_zero' takes all that is inexact away",
        **dict.fromkeys(("jam", "jamming", "von_neumann"), _JAMMED),
        "jam_unbiased": "did you mean 'to_odd'",
        "stoch_equal": "did you mean 'stochastic_equal'",
        "rnda": "MPFR means 'away_from_zero' by it; ties to away are 'nearest_away'",
    },
    "operation": {
        "compare": "state which: eq, le, lt (RISC-V's FEQ, FLE, FLT), eq_signaling, le_quiet or lt_quiet",
        "fmod": "C truncates the quotient; 'remainder' is IEEE 754's, which takes the nearest integer",
    },
}


def format_alias(name: str) -> str:
    """The registered name that a format's name stands for, or the name in lower case if it is no alias.

    >>> format_alias("torch.float8_e4m3fn"), format_alias("F32"), format_alias("e6m9")
    ('e4m3fn', 'binary32', 'e6m9')
    """
    key = _PREFIX.sub("", name.strip().lower(), count=1)
    return _BY_KIND["format"].get(key, key)


def rounding_alias(name: str) -> str:
    """The mode that a name stands for, or the name in lower case if it is no alias.

    >>> rounding_alias("minMag"), rounding_alias("roundTiesToAway"), rounding_alias("up")
    ('toward_zero', 'nearest_away', 'up')
    """
    key = name.strip().lower()
    return _BY_KIND["rounding"].get(key, key)


def operation_alias(name: str) -> str:
    """The operation that a name stands for, or the name in lower case if it is no alias.

    >>> operation_alias("mulAdd"), operation_alias("lt"), operation_alias("tanh")
    ('fma', 'compare_signaling_less', 'tanh')
    """
    key = name.strip().lower()
    return _BY_KIND["operation"].get(key, key)


def integer_named(name: object) -> tuple[int, bool] | None:
    """(bits, signed) of a name of integers, TestFloat's, NumPy's or C's; None of other names.

    >>> integer_named("ui32"), integer_named("int8"), integer_named("q8.0")
    ((32, False), (8, True), None)
    """
    if not isinstance(name, str):
        return None
    match = _INTEGER.fullmatch(_PREFIX.sub("", name.strip().lower(), count=1).removesuffix("_t"))
    return (int(match[2]), not match[1].startswith("u")) if match else None


def near(name: str, known, count: int = 1) -> list[str]:
    """The known names that a name is likely a slip of; none where another meaning is as likely."""
    return difflib.get_close_matches(name.strip().lower(), list(known), n=count, cutoff=0.75)


def refused(kind: str, name: str) -> str | None:
    """Why a name is no alias and what to write instead, as text for a message; None if nothing is known of it.

    >>> refused("rounding", "rtn")
    "OpenCL means 'down' by it, papers on quantization 'nearest_even'"
    """
    key = name.strip().lower()
    if kind == "format":
        key = _PREFIX.sub("", key, count=1)
    return _REFUSED[kind].get(key)


class Function(NamedTuple):
    """What one of TestFloat's functions states: the operation, its operands' format, the result's where it is another
    one, and, of some names, the rounding and whether inexact is raised."""

    op: str
    fmt: str
    out_fmt: str | None = None
    rounding: str | None = None
    exact: bool | None = None


_TYPE = r"(f16|bf16|f32|f64|f128|extf80|u?i32|u?i64)"
_CONVERSION = re.compile(rf"{_TYPE}_to_{_TYPE}(?:_(rx?)_(\w+))?")
_ARITHMETIC = re.compile(
    r"(f16|bf16|f32|f64|f128|extf80)_(add|sub|mul|muladd|div|rem|sqrt|eq|le|lt|eq_signaling|le_quiet|lt_quiet|roundtoint)"
    r"(?:_(x|r)(?:_(\w+))?)?"
)


def function_of(name: object) -> Function | None:
    """What a name of TestFloat's functions states; None of other names.

    Examples
    --------
    >>> function_of("f32_mulAdd")
    Function(op='fma', fmt='binary32', out_fmt=None, rounding=None, exact=None)
    >>> function_of("f32_to_i32_r_minMag")
    Function(op='to_integer', fmt='binary32', out_fmt='i32', rounding='toward_zero', exact=False)
    >>> function_of("ui32_to_f16"), function_of("multiply")
    (Function(op='convert', fmt='uq32.0', out_fmt='binary16', rounding=None, exact=None), None)
    """
    if not isinstance(name, str):
        return None
    key = name.strip().lower()
    if match := _CONVERSION.fullmatch(key):
        source, target, kind, mode = match.groups()
        if source in INTEGERS and target in INTEGERS:
            return None
        if target in INTEGERS:
            return Function(
                "to_integer", format_alias(source), target, mode and rounding_alias(mode), kind and kind == "rx"
            )
        if kind:
            return None
        bits, signed = INTEGERS.get(source, (0, True))
        return Function(
            "convert", f"{'' if signed else 'u'}q{bits}.0" if bits else format_alias(source), format_alias(target)
        )
    if match := _ARITHMETIC.fullmatch(key):
        fmt, op, kind, mode = match.groups()
        if kind and (op != "roundtoint" or (kind == "r") != bool(mode)):
            return None
        return Function(
            operation_alias(op), format_alias(fmt), None, mode and rounding_alias(mode), kind and kind == "x"
        )
    return None
