"""Operations on wide formats against MPFR: exponent classes crossed with significand patterns, and random codes.

MPFR rounds correctly to the format's precision within its exponents; INEXACT and OVERFLOW are compared too. Its
UNDERFLOW goes by another definition; SoftFloat and the CPU judge that.
"""

import random

import gmpy2
import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.formats.names import format as format_of
from tests.support.cases import cases
from tests.support.core_oracles import edge_codes, random_codes, show
from tests.support.mpfr import MPFR_MODES, code_of, context

FORMATS = ["binary16", "bfloat16", "tf32", "binary32", "binary64", "e11m40", "e8m30", "e15m48", "e6m50", "e14m17"]
OPERATIONS = {
    "add": (2, gmpy2.add), "subtract": (2, gmpy2.sub), "multiply": (2, gmpy2.mul), "divide": (2, gmpy2.div),
    "sqrt": (1, gmpy2.sqrt), "fma": (3, gmpy2.fma),
}  # fmt: skip


def number(code, fmt):
    """A finite code as MPFR's number, exactly."""
    x = ref.decode(code, fmt)
    with gmpy2.context(precision=fmt.precision + 2, emin=-(1 << 20), emax=1 << 20):
        magnitude = gmpy2.mpfr(gmpy2.mpq(x.numerator, x.denominator))
        return -magnitude if x.sign else magnitude


def compare(operation, codes, fmt, mode, **other):
    got, flags = getattr(sn.ops, operation)(*codes, fmt, return_flags=True, **({"rounding": mode} | other))
    function, numbers = OPERATIONS[operation][1], {}
    with context(fmt, mode) as settings:
        for i, operands in enumerate(zip(*(c.tolist() for c in codes), strict=True)):
            if any(c & fmt.inf_code == fmt.inf_code for c in operands):
                continue
            for c in operands:
                if c not in numbers:
                    numbers[c] = number(c, fmt)
            x = [numbers[c] for c in operands]
            settings.clear_flags()
            result = function(*x)
            if gmpy2.is_nan(result) or settings.divzero:
                continue
            want = code_of(result, fmt), bool(settings.inexact), bool(settings.overflow)
            mine = int(got[i]), bool(flags[i] & sn.Flags.INEXACT), bool(flags[i] & sn.Flags.OVERFLOW)
            assert mine == want, (
                f"{operation}({', '.join(show(c, fmt) for c in operands)}) {fmt} {mode}: got {mine}, MPFR {want}"
            )


@cases("mode", MPFR_MODES)
@cases("operation", OPERATIONS)
@cases("name", FORMATS)
def test_operations_equal_mpfr(name, operation, mode):
    fmt, rng = format_of(name), random.Random(f"{name} {operation} {mode}")
    edges = edge_codes(fmt)
    start = rng.randrange(5)
    tables = {1: [edges], 2: [edges[start::5], edges[::12]], 3: [edges[start::23], edges[3::23], edges[start::50]]}
    tables = tables[OPERATIONS[operation][0]]
    compare(operation, [c.ravel() for c in np.meshgrid(*tables, indexing="ij")], fmt, mode)
    compare(operation, [random_codes(fmt, rng, 100) for _ in tables], fmt, mode)


def test_mpfr_catches_a_planted_fault():
    fmt = format_of("e8m30")
    codes = [random_codes(fmt, random.Random(1), 300) for _ in range(2)]
    with pytest.raises(AssertionError, match="MPFR"):
        compare("multiply", codes, fmt, "nearest_even", rounding="toward_zero")
