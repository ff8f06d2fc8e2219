"""Fixed point whose point lies outside of the code's bits: q10.-2 in steps of 4, q-2.10 below 1/8."""

from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.formats.modes import ROUNDING_MODES
from softnum.vectors import VectorSpec, check, plan, write
from tests.support.cases import cases

SMALL = ["q7.-2", "uq6.-2", "q-1.6", "uq-2.6", "q6.-3", "q-3.6"]
WIDE = [
    "q40.-8", "q-30.50", "q63.-1", "q-1.64", "q33.-1", "uq64.-40", "uq-20.64", "q64.-62", "q-62.64", "q64.-20",
    "uq20.-4", "q-8.24", "uq64.-63", "uq-63.64",
]  # fmt: skip
OTHERS = ["q4.4", "e4m3fn", "binary16", "q1.63", "q32.32", "binary64", "binary32"]
OPERATIONS = {
    "add": 2, "subtract": 2, "multiply": 2, "divide": 2, "fma": 3, "sqrt": 1, "remainder": 2, "minimum": 2,
    "round_to_integral": 1,
}  # fmt: skip


def value_of(code: int, fmt) -> Fraction:
    """By the text of the format: an integer, in two's complement if signed, times 2**-F."""
    fmt = sn.format(fmt)
    negative = fmt.signed and code >> (fmt.bits - 1)
    return Fraction(code - (negative << fmt.bits)) * Fraction(2) ** -fmt.fraction_bits


def some_codes(fmt, n: int, rng) -> np.ndarray:
    """Of finite numbers, of every size."""
    fmt = sn.format(fmt)
    codes = rng.integers(0, 1 << 64, n, dtype=np.uint64) & np.uint64((1 << fmt.bits) - 1)
    if fmt.kind == "fixed":
        codes >>= np.where(rng.random(n) < 0.4, rng.integers(0, fmt.bits, n), 0).astype(np.uint64)
    codes = codes.astype(fmt.storage_dtype)
    return np.where(np.isfinite(sn.decode(codes, fmt, object).astype(float)), codes, codes.dtype.type(0))


@cases("name", [*SMALL, *WIDE])
def test_names_values_and_bounds(name):
    fmt = sn.format(name)
    assert fmt.name == name and eval(repr(fmt), {"FixedFormat": sn.FixedFormat}) == fmt
    assert fmt.bits == fmt.integer_bits + fmt.fraction_bits
    codes = some_codes(name, 300, np.random.default_rng(1)) if fmt.bits > 8 else np.arange(1 << fmt.bits)
    values = sn.decode(codes, fmt, object)
    for code, value in zip(codes.tolist(), values.tolist(), strict=True):
        assert value == value_of(code, fmt) == ref.decode(code, fmt).fraction
        assert fmt.min <= value <= fmt.max
    assert np.array_equal(sn.encode(values, fmt), codes)
    assert Fraction(fmt.epsilon) == Fraction(2) ** -fmt.fraction_bits
    assert fmt.fields(0)[0][1].strip(".") == "0" * fmt.bits


@pytest.mark.parametrize(
    "name", ["q64.-64", "q-64.65", "q-3.3", "q1.0", "q65.-2", "q8.-7", "uq-4.4", "q100.-50", "q--1.4", "q1.+3"]
)
def test_names_of_none(name):
    with pytest.raises(ValueError, match="unknown format|must lie in|at least 2 bits|integer_bits|fraction_bits"):
        sn.format(name)


@cases("name", SMALL)
@cases("mode", ROUNDING_MODES)
def test_every_number_between_and_beyond_all_values(name, mode):
    """Multiples of an eighth of the step, past both ends: as floats, as binary32, as fractions, with every rule."""
    fmt = sn.format(name)
    step = Fraction(2) ** -fmt.fraction_bits
    exact = [Fraction(k, 8) * step for k in range(-9 << fmt.bits, 9 << fmt.bits)]
    floats = np.array([float(x) for x in exact])
    words = np.random.default_rng(2).integers(0, 1 << 32, len(exact), dtype=np.uint64).astype(np.uint32)
    random = {"random_bits": words, "stochastic_bits": 3} if mode.startswith("stochastic") else {}
    for overflow in fmt.overflow_rules:
        options = dict(rounding=mode, overflow=overflow)
        got, flags = sn.encode(floats, fmt, return_flags=True, **options, **random)
        want = [
            ref.round_value(x, 0, fmt, **options, **({"random_bits": int(w), "stochastic_bits": 3} if random else {}))
            for x, w in zip(exact, words, strict=True)
        ]
        assert got.tolist() == [code for code, _ in want] and flags.tolist() == [raised for _, raised in want]
        values = np.array([float(value_of(code, fmt)) for code, _ in want])
        assert np.array_equal(sn.encode(floats, fmt, **options, **random), got)
        assert np.array_equal(sn.encode(floats.astype(np.float32), fmt, **options, **random), got)
        assert np.array_equal(sn.quantize(floats, fmt, **options, **random), values)
        assert np.array_equal(sn.quantize(floats.astype(np.float32), fmt, **options, **random), values)
        some = {k: v[::7] if k == "random_bits" else v for k, v in random.items()}
        assert np.array_equal(sn.encode(np.array(exact, object)[::7], fmt, **options, **some), got[::7])


@cases("a", SMALL)
@cases("b", SMALL)
def test_every_sum_and_product(a, b):
    """Of all codes of small formats, into both, and into one with the point inside, against fractions."""
    x, y = (v.ravel() for v in np.meshgrid(*(np.arange(1 << sn.format(f).bits, dtype=np.uint8) for f in (a, b))))
    exact_x, exact_y = ([value_of(int(c), f) for c in codes] for codes, f in ((x, a), (y, b)))
    for out in (a, b, "q4.4", "q20.20"):
        for name, of_values in (("add", Fraction.__add__), ("multiply", Fraction.__mul__)):
            got, flags = getattr(sn.ops, name)(x, y, (a, b), out_fmt=out, return_flags=True)
            for i in range(0, len(x), 1 if len(x) < 100 else 5):
                want = of_values(exact_x[i], exact_y[i])
                assert (got[i], flags[i]) == ref.round_value(want, 0, out), (name, x[i], y[i], out)


@cases("seed", range(12))
def test_operations_of_all_formats(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        name = str(rng.choice(list(OPERATIONS)))
        formats = [str(f) for f in rng.choice([*SMALL, *WIDE, *OTHERS], OPERATIONS[name])]
        out = sn.format(str(rng.choice([*SMALL, *WIDE])))
        options = dict(rounding=str(rng.choice(list(ROUNDING_MODES))), overflow=str(rng.choice(out.overflow_rules)))
        if name == "sqrt" and options["overflow"] == "wrap":
            options["overflow"] = "saturate"
        codes = [some_codes(f, 20, rng) for f in formats]
        words = rng.integers(0, 1 << 32, 20, dtype=np.uint64).astype(np.uint32)
        random = {"random_bits": words, "stochastic_bits": 9} if options["rounding"].startswith("stochastic") else {}
        got, flags = getattr(sn.ops, name)(
            *codes, tuple(formats), out_fmt=out, return_flags=True, invalid=0, **options, **random
        )
        for i in range(20):
            word = {"random_bits": int(words[i]), "stochastic_bits": 9} if random else {}
            operands = [int(c[i]) for c in codes]
            want = getattr(ref, name)(*operands, tuple(formats), out_fmt=out, invalid=0, **options, **word)
            assert (got[i], flags[i]) == want, (name, formats, out, options, operands, word)


UNITS = [
    sn.MadUnit("q12.-4", operand=("q7.-2", "q6.-1")),
    sn.MadUnit("q16.-4", operand=("q7.-2", "q6.-1"), overflow="wrap"),  # integers: steps of 8, and of 16 after rounding
    sn.MadUnit("q16.-3", operand=("q7.-2", "q6.-1"), overflow="wrap"),
    sn.MadUnit("q16.-3", operand=("uq7.-2", "q6.-1")),
    sn.MadUnit("q20.-3", operand=("q7.-2", "q6.-1"), chunk=3),
    sn.MadUnit("q-3.14", operand="q-2.8"),
    sn.MadUnit("q0.16", operand="q-2.8", overflow="wrap"),
    sn.MadUnit("q0.16", operand="q-2.8"),
    sn.MadUnit("q-3.14", operand="q-2.8", product="q-3.10", rounding="nearest_away"),
    sn.MadUnit("q-3.14", operand=("q-2.8", "e4m3fn"), rounding="up"),
    sn.MadUnit("binary32", operand=("q10.-2", "q-2.10")),
    sn.MadUnit("q40.-20", operand="q20.-12", rounding="to_odd"),
]


@cases("unit", UNITS, ids=repr)
def test_units(unit):
    """As values and by codes, with C; long sums are the integers' path's."""
    rng = np.random.default_rng(5)
    fa, fb = unit.operand
    a = some_codes(fa, 3 * 40, rng).reshape(3, 40)
    b = some_codes(fb, 40 * 4, rng).reshape(40, 4)
    c = some_codes(unit.accumulator, 12, rng).reshape(3, 4)
    x, y, z = sn.decode(a, fa), sn.decode(b, fb), sn.decode(c, unit.accumulator)
    got = sn.matmul(x, y, unit, c=z)
    by_arrays = sn.matmul(sn.array(x, fa), sn.array(y, fb), unit, c=sn.array(z, unit.accumulator))
    options = {name: getattr(unit, name) for name in ("rounding", "overflow", "chunk", "product")}
    for m, n in np.ndindex(3, 4):
        want, _ = ref.mad_dot(
            a[m].tolist(), b[:, n].tolist(), c=int(c[m, n]), operand=unit.operand,
            accumulator=unit.accumulator,
            **{k: v for k, v in options.items() if v is not None},
        )  # fmt: skip
        value = ref.decode(want, unit.accumulator)
        assert Fraction(float(got[m, n])) == value.fraction, (m, n)
        assert Fraction(float(np.asarray(by_arrays, float)[m, n])) == value.fraction


@cases("operands, out", [
    (("q10.-2", "q-2.10"), "q10.-2"), (("q10.-2", "q10.-2"), "q30.-8"), (("q-2.10", "q-2.10"), "q-1.20"),
    (("q33.-1", "uq64.-40"), "q64.-20"), (("q-30.50", "e4m3fn"), "uq-20.50"), (("q-8.24", "q4.4"), "binary32"),
])  # fmt: skip
@cases("overflow", ["saturate", "wrap"])
def test_exact_sums(operands, out, overflow):
    rng = np.random.default_rng(6)
    out = sn.format(out)
    if overflow not in out.overflow_rules:
        overflow = None
    unit = sn.ExactDotUnit(out, operand=operands, overflow=overflow)
    a, b = (some_codes(f, 50, rng) for f in operands)
    for k in (50, 7, 1):
        a, b = a[:k], b[:k]
        total = sum(
            ref.decode(int(p), operands[0]).fraction * ref.decode(int(q), operands[1]).fraction
            for p, q in zip(a, b, strict=True)
        )
        want, _ = ref.round_value(Fraction(total), 0, out, overflow=overflow)
        got = sn.matmul(sn.array(sn.decode(a[None], operands[0], object), operands[0]),
                        sn.array(sn.decode(b[:, None], operands[1], object), operands[1]), unit)  # fmt: skip
        assert Fraction(float(np.asarray(got, float)[0, 0])) == Fraction(float(ref.decode(want, out).fraction))


def test_arrays_text_files_and_packing(tmp_path):
    a = sn.array([[-512.0, 508.0, 6.0, 10.0]], "q10.-2")
    assert repr(a) == "Array([[-512.,  508.,    8.,    8.]], q10.-2)"
    assert (a + a).tolist() == [[-512.0, 508.0, 16.0, 16.0]]
    assert a.astype("q-2.10").tolist() == [[-0.125, 0.1240234375, 0.1240234375, 0.1240234375]]
    assert sn.encode(["0.1", "1/16", "-0x1p-4"], "q-2.10").tolist() == [102, 64, 192]
    sn.save(tmp_path / "a.npz", a)
    back = sn.load(tmp_path / "a.npz")
    assert back.format == a.format and np.array_equal(back.codes, a.codes)
    wide = sn.array(np.arange(7.0) * 2**-10, "q-2.7")
    assert sn.arrays.unpack(sn.arrays.pack(wide.codes, "q-2.7"), "q-2.7", 7).tolist() == wide.codes.tolist()
    assert sn.next_up(a).tolist() == [[-508.0, 508.0, 12.0, 12.0]]
    assert sn.ops.to_integer(a, dtype=np.int16).tolist() == [[-512, 508, 8, 8]]
    assert sn.format("q10.-2").contains(sn.format("q9.-3")) and not sn.format("q10.-2").contains(sn.format("q9.-1"))


@cases("op, fmt, out", [
    ("add", "q10.-2", None), ("multiply", ("q10.-2", "q-2.10"), "q4.4"), ("convert", "binary16", "uq-2.10"),
    ("divide", "q-3.12", None), ("sqrt", "uq12.-4", "q8.-2"),
])  # fmt: skip
@pytest.mark.parametrize("ending", ["txt", "mem", "bin.mem", "csv", "jsonl", "npz"])
def test_vectors(tmp_path, op, fmt, out, ending):
    spec = VectorSpec.make(op, fmt, out_fmt=out, overflow="saturate")
    path = tmp_path / f"v.{ending}"
    write(plan(spec, count=2000), path)
    report = check(path)
    assert report.ok and report.vectors == min(2000, 1 << sum(f.bits for f in spec.formats)) and report.spec == spec


def test_apytypes():
    """Its rounding and overflow of fixed point, all codes of q5.3 (and between) to formats with the point outside."""
    apytypes = pytest.importorskip("apytypes")
    modes = {
        "TIES_EVEN": "nearest_even", "TIES_AWAY": "nearest_away", "TIES_ZERO": "nearest_zero", "TIES_POS": "nearest_up",
        "TIES_NEG": "nearest_down", "TO_ZERO": "toward_zero", "TO_AWAY": "away_from_zero", "TO_POS": "up",
        "TO_NEG": "down", "JAM_UNBIASED": "to_odd",
    }  # fmt: skip
    codes = np.arange(1 << 12)
    for source, targets in (((9, 3), ["q7.-2", "q10.-4", "q6.-2"]), ((0, 12), ["q-1.6", "q-3.9", "q-2.4"])):
        x = apytypes.APyFixedArray(codes.tolist(), *source)
        for target in targets:
            fmt = sn.format(target)
            for theirs, ours in modes.items():
                for rule in ("SAT", "WRAP"):
                    y = x.cast(
                        fmt.integer_bits, fmt.fraction_bits, getattr(apytypes.QuantizationMode, theirs),
                        getattr(apytypes.OverflowMode, rule),
                    )  # fmt: skip
                    got = sn.convert(
                        codes, sn.FixedFormat(*source), fmt, rounding=ours,
                        overflow={"SAT": "saturate", "WRAP": "wrap"}[rule],
                    )  # fmt: skip
                    assert np.array_equal(got, np.array(y.to_bits()) & ((1 << fmt.bits) - 1)), (target, theirs, rule)
