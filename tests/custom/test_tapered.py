"""Posits and linear takums against a definition in fractions (tests/support/posit_definition.py)."""

import pickle
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import softnum as sn
from softnum import reference
from softnum.vectors import Coverage, UnitSpec, VectorSpec, check, make_rom, plan, write
from tests.support.posit_definition import Posit, TakumLinear

EIGHT = {"posit8": Posit(8), "posit8_es0": Posit(8, 0), "posit8_es1": Posit(8, 1), "takum_linear8": TakumLinear(8)}
WIDE = {
    "posit16": Posit(16), "posit32": Posit(32), "posit16_es1": Posit(16, 1), "posit20_es3": Posit(20, 3),
    "posit32_es5": Posit(32, 5), "takum_linear16": TakumLinear(16), "takum_linear32": TakumLinear(32),
}  # fmt: skip
SMALL = {f"posit{n}_es{es}": Posit(n, es) for n in (3, 4, 5, 7, 11) for es in (0, 1, 2, 5)}
SMALL |= {f"takum_linear{n}": TakumLinear(n) for n in (3, 4, 6, 11)}
DEFINED = EIGHT | WIDE | SMALL
EXACT = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: None if b == 0 else a / b,
}


def wanted(definition, name, *codes):
    """The codes of an operation by the definition."""
    values = [[definition.value(int(c)) for c in column] for column in codes]
    return [definition.encode(None if None in v else EXACT[name](*v)) for v in zip(*values, strict=True)]


@cache
def drawn(name, count, columns, seed=1):
    bits = sn.format(name).bits
    rng = np.random.default_rng([seed, bits, count])
    return rng.integers(0, 1 << bits, (columns, count), np.uint64).astype(sn.format(name).storage_dtype)


def decoded(a):
    return sn.decode(a.codes, a.format)


@pytest.mark.parametrize("name", DEFINED)
def test_values_and_codes(name):
    fmt, definition = sn.format(name), DEFINED[name]
    codes = np.arange(1 << fmt.bits) if fmt.bits <= 11 else drawn(name, 500, 1)[0]
    codes = np.concatenate([codes, np.arange(4), fmt.nan_code + np.arange(-3, 4)]).astype(np.uint64)
    codes = (codes & np.uint64(2 * fmt.nan_code - 1)).astype(fmt.storage_dtype)
    values = sn.decode(codes, fmt)
    want = [definition.value(int(c)) for c in codes]
    assert [None if v != v else Fraction(v) for v in values.tolist()] == want
    assert np.array_equal(sn.encode(values, fmt), codes)
    assert float(fmt.max) == definition.value(fmt.max_code) and fmt.smallest == definition.value(1)
    assert fmt.min == -fmt.max and fmt.has_nan and fmt.has_zero and fmt.signed
    assert not fmt.infinities and not fmt.negative_zero


@pytest.mark.slow
@pytest.mark.parametrize("name", DEFINED)
def test_rounding_at_and_beside_every_point_that_decides_it(name):
    fmt, definition = sn.format(name), DEFINED[name]
    codes = (
        range(1, fmt.nan_code)
        if fmt.bits <= 11
        else sorted({int(c) % fmt.nan_code or 1 for c in drawn(name, 400, 1)[0]})
    )
    points = [definition.value(c) for c in codes]
    points += [definition.middle(c) for c in codes]
    points += [(definition.value(c) + definition.value(c + 1)) / 2 for c in codes if c + 1 < fmt.nan_code]
    x = np.array([float(p) for p in points])
    x = np.concatenate([x, np.nextafter(x, np.inf), np.nextafter(x, 0), [5e-324, 1e-300, 1e300, 1.7e308, 0.0]])
    x = np.concatenate([x, -x])
    want = [definition.encode(Fraction(v)) for v in x.tolist()]
    assert sn.encode(x, fmt).tolist() == want
    assert sn.encode([np.nan, np.inf, -np.inf], fmt).tolist() == [fmt.nan_code] * 3
    rest = [Fraction(p) * (1 + Fraction(s, 3**60)) for p in points[:80] for s in (-1, 1)]  # closer than binary64 tells
    assert sn.encode(np.array(rest, object), fmt).tolist() == [definition.encode(v) for v in rest]
    narrow = x[np.abs(x) < 3e38].astype(np.float32)
    many = np.resize(narrow, 5000)
    assert np.array_equal(sn.encode(many, fmt), sn.encode(many.astype(np.float64), fmt))


@pytest.mark.parametrize("name", EIGHT)
@pytest.mark.parametrize("op", EXACT)
def test_all_pairs_of_eight_bits(name, op):
    codes = np.arange(256, dtype=np.uint8)
    a, b = (c.ravel() for c in np.meshgrid(codes, codes, indexing="ij"))
    want = wanted(EIGHT[name], op, a, b)
    assert getattr(sn.ops, op)(a, b, name).tolist() == want
    assert sn.format(name).table(op).ravel().tolist() == want


@pytest.mark.parametrize("name", WIDE)
def test_drawn_pairs(name):
    a, b = drawn(name, 400, 2)
    for op in EXACT:
        assert getattr(sn.ops, op)(a, b, name).tolist() == wanted(WIDE[name], op, a, b)


@pytest.mark.parametrize("name", EIGHT | WIDE)
def test_fma_and_sqrt(name):
    fmt, definition = sn.format(name), DEFINED[name]
    a, b, c = drawn(name, 300, 3)
    values = [[definition.value(int(x)) for x in column] for column in (a, b, c)]
    want = [definition.encode(None if None in v else v[0] * v[1] + v[2]) for v in zip(*values, strict=True)]
    assert sn.fma(a, b, c, fmt).tolist() == want
    roots = sn.decode(sn.sqrt(a, fmt), fmt)
    for x, root in zip(values[0], roots.tolist(), strict=True):
        if x is None or x < 0:
            assert root != root
        elif x:
            low, high = (fmt.decode(fmt.stepped(sn.encode([root], fmt), s), np.float64)[0] for s in (-1, 1))
            below, above = (_between(definition, fmt, v, root) for v in (low, root))
            assert high > root > low and below**2 <= x
            assert above is None or _between(definition, fmt, root, high) ** 2 >= x


def _between(definition, fmt, low, high):
    code = int(sn.encode([low], fmt)[0])
    return definition.middle(code) if low != high else Fraction(low)


def test_conversions_between_formats():
    a = sn.array(sn.decode(np.arange(256, dtype=np.uint8), "posit8"), "posit8")
    for name in ["posit16", "takum_linear16", "e4m3fn", "binary32", "posit32", "posit6_es1"]:
        found = a.astype(name)
        assert np.array_equal(decoded(found), sn.quantize(decoded(a), name), equal_nan=True)
    back = sn.convert(sn.array([1e9, -np.inf, np.nan, 0.3], "binary32"), to_fmt="posit16")
    assert np.array_equal(
        decoded(back), sn.quantize([1e9, -np.inf, np.nan, np.float32(0.3)], "posit16"), equal_nan=True
    )
    for rounding in ("up", "toward_zero"):
        found = sn.convert(a, to_fmt="e5m2", rounding=rounding)
        assert np.array_equal(decoded(found), sn.quantize(decoded(a), "e5m2", rounding=rounding), equal_nan=True)
    assert sn.ops.to_integer(sn.array([2.5, -3.0], "posit16"), dtype=np.int8).tolist() == [2, -3]


@pytest.mark.parametrize("name", ["posit8", "posit32", "takum_linear16"])
def test_nar(name):
    nan = sn.array([np.nan], name)
    numbers = sn.array([0.0, -1e300, 1e300, 1.0], name)
    assert (nan == nan).all() and not (nan != nan).any() and not (nan < nan).any() and (nan <= nan).all()
    assert (nan < numbers).all() and (numbers > nan).all() and not (nan >= numbers).any()
    assert sn.compare(numbers, nan).tolist() == [1] * 4 and sn.compare(nan, nan, signaling=True).tolist() == [0]
    assert sn.compare(nan, sn.array([1.0], "binary32")).tolist() == [2]
    assert sn.compare(nan, sn.array([np.nan], "takum_linear8")).tolist() == [0]
    assert np.isnan(decoded(sn.divide(numbers, sn.array([0.0], name)))).all()
    assert np.isnan(decoded(np.sqrt(sn.array([-1.0, -1e-300], name)))).all()
    assert np.isnan([decoded(sn.log(sn.array(0.0, name))), decoded(sn.rsqrt(sn.array(0.0, name)))]).all()
    for operation in (sn.add, sn.multiply, sn.minimum, sn.maximum):
        assert np.isnan(decoded(operation(nan, numbers))).all()
    assert np.array_equal(decoded(sn.ops.maximum_number(nan, numbers)), decoded(numbers))
    order = decoded(np.sort(sn.array([3.0, np.nan, -3.0, 0.0], name)))
    assert np.isnan(order[0]) and order[1:].tolist() == [-3, 0, 3]
    assert sn.ops.total_order(nan, numbers).all() and not sn.ops.total_order(numbers, nan).any()
    assert np.isnan(decoded(np.negative(nan))) and np.isnan(decoded(np.abs(nan)))


@pytest.mark.parametrize("name", ["posit8_es1", "posit32", "takum_linear32"])
def test_neighbours_and_signs_are_those_of_integers(name):
    fmt = sn.format(name)
    codes, kind = drawn(name, 500, 1)[0], fmt.storage_dtype
    codes = np.concatenate([codes, np.array([0, 1, fmt.nan_code - 1, fmt.nan_code, 2 * fmt.nan_code - 1], kind)])
    mask = 2 * fmt.nan_code - 1
    assert sn.next_up(codes, fmt).tolist() == [(int(c) + 1) & mask for c in codes]
    assert sn.next_down(codes, fmt).tolist() == [(int(c) - 1) & mask for c in codes]
    assert sn.negate(codes, fmt).tolist() == [-int(c) & mask for c in codes]
    assert sn.absolute(codes, fmt).tolist() == [-int(c) & mask if c > fmt.nan_code else int(c) for c in codes]


@pytest.mark.parametrize("name", ["posit16", "posit32", "takum_linear32"])
def test_functions_are_rounded_once(name):
    x = sn.array(np.random.default_rng(3).standard_normal(300) * 4, name)
    wide = x.astype("e9m54")
    for function in ["exp", "tanh", "sin", "log1p", "erf", "cbrt", "atan"]:
        with_more = getattr(sn.ops, function)(wide, rounding="to_odd")
        want = np.array(sn.decode(with_more.codes, with_more.format, object).tolist(), object)
        assert getattr(sn.ops, function)(x).codes.tolist() == sn.encode(want, name).tolist()


def test_identity(tmp_path):
    for name in DEFINED:
        fmt = sn.format(name)
        assert sn.format(str(fmt)) == fmt and hash(sn.format(str(fmt))) == hash(fmt)
        assert eval(repr(fmt), vars(sn)) == fmt and pickle.loads(pickle.dumps(fmt)) == fmt
    assert sn.format("posit8_es2").name == "posit8" and sn.format(" POSIT16 ") == sn.PositFormat(16)
    assert sn.format("posit8") != sn.format("posit8_es1") != sn.format("takum_linear8") != sn.format("posit9")
    a = sn.array([1.5, -2.0, np.nan], "posit32")
    sn.save(tmp_path / "a.npz", a)
    assert sn.load(tmp_path / "a.npz").format == a.format
    assert sn.format("takum_linear12").summary("here") == {"format": "takum_linear12", "bits": 12}
    assert (
        sn.format("posit8").label("file.py:mine") == "posit8" and sn.format("posit8").own_widths("file.py:mine") == {}
    )
    unit = sn.MadUnit("posit16", operand="posit8")
    assert eval(repr(unit), vars(sn)) == unit


@pytest.mark.parametrize("name", ["posit33", "posit2", "posit8_es6", "takum_linear2", "takum_linear64"])
def test_widths_are_limited(name):
    with pytest.raises(ValueError, match="must lie in"):
        sn.format(name)


@pytest.mark.parametrize("name", ["posit8", "posit32", "takum_linear16"])
def test_what_is_refused(name):
    x = np.array([1.0, 300.0])
    a = sn.array(x, name)
    for rounding in ("up", "down", "toward_zero", "nearest_away", "to_odd", "stochastic"):
        options = {"rounding": rounding, **({"key": 1} if rounding == "stochastic" else {})}
        with pytest.raises(ValueError, match="to nearest, ties to even"):
            sn.quantize(x, name, **options)
        with pytest.raises(ValueError, match="to nearest, ties to even"):
            sn.add(a, a, **options)
    assert np.isnan(sn.quantize([np.inf], name, overflow="saturate_finite")).all()
    for rule in ("saturate", "infinity", "wrap"):
        with pytest.raises(ValueError, match="has no overflow"):
            sn.encode(x, name, overflow=rule)
    with pytest.raises(ValueError, match="no exceptions"):
        sn.encode(x, name, return_flags=True)
    with pytest.raises(ValueError, match="to nearest, ties to even"):
        sn.MadUnit(name, operand=name, rounding="stochastic")


@pytest.mark.parametrize("name", ["posit8", "takum_linear8", "posit16", "posit32"])
@pytest.mark.parametrize("options", [{}, {"lanes": 3}, {"chunk": 4}], ids=str)
@pytest.mark.parametrize("product", [False, True])
def test_units(name, options, product):
    definition = DEFINED[name]
    unit = sn.MadUnit(name, operand=name, **({"product": name} if product else {}), **options)
    rng = np.random.default_rng(8)
    a, b = (sn.array(rng.standard_normal(s) * 3, name) for s in ((2, 11), (11, 3)))
    found = sn.matmul(a, b, unit)
    found = found if isinstance(found, np.ndarray) else decoded(found)

    def step(acc, x, y):
        if product:
            return rounded(acc + rounded(x * y))
        return rounded(acc + x * y)

    def rounded(x):
        return definition.value(definition.encode(x))

    for i, j in np.ndindex(2, 3):
        x = [Fraction(v) for v in decoded(a)[i].tolist()]
        y = [Fraction(v) for v in decoded(b)[:, j].tolist()]
        chunk, lanes = options.get("chunk", 11), options.get("lanes", 1)
        outer = Fraction(0)
        for start in range(0, 11, chunk):
            sums = [Fraction(0)] * lanes
            for k in range(start, min(start + chunk, 11)):
                sums[k % lanes] = step(sums[k % lanes], x[k], y[k])
            total = sums[0]
            for s in sums[1:]:
                total = rounded(total + s)
            outer = rounded(outer + total) if "chunk" in options else total
        assert Fraction(float(found[i, j])) == outer


@pytest.mark.parametrize("name", ["posit8", "posit16", "posit32", "posit32_es5", "takum_linear16"])
def test_exact_sums_are_rounded_once(name):
    fmt, definition = sn.format(name), DEFINED[name]
    unit = sn.ExactDotUnit(name, operand=name)
    codes = drawn(name, 4 * 9 + 9 * 3 + 4 * 3, 1)[0]
    shapes = (4, 9), (9, 3), (4, 3)
    a, b, c = (sn.Array(x.reshape(s), fmt) for x, s in zip(np.split(codes, [36, 63]), shapes, strict=True))
    for start in (c, None):
        found = sn.matmul(a, b, unit, start)
        found = sn.encode(found, fmt) if isinstance(found, np.ndarray) else found.codes
        for i, j in np.ndindex(4, 3):
            x, y = ([definition.value(int(v)) for v in row] for row in (a.codes[i], b.codes[:, j]))
            z = Fraction(0) if start is None else definition.value(int(c.codes[i, j]))
            lost = None in (*x, *y, z)
            assert found[i, j] == definition.encode(
                None if lost else sum((p * q for p, q in zip(x, y, strict=True)), z)
            )
    x = sn.quantize(np.random.default_rng(0).standard_normal(50), name)
    assert sn.encode(sn.sum(x, unit), name) == definition.encode(sum(map(Fraction, x.tolist())))
    assert eval(repr(unit), vars(sn)) == unit
    with pytest.raises(ValueError, match="to nearest, ties to even"):
        sn.ExactDotUnit(name, operand=name, rounding="up")
    with pytest.raises(TypeError, match="no trace"):
        unit.trace(x[:3], x[:3])


def test_infinities_of_a_table():
    table = sn.CustomFormat.from_table([0.0, 0.5, 1, 2, np.nan, -2, -1, -0.5], name="tp")
    one, zero = sn.array([1.0, -1.0], table), sn.array([0.0], table)
    assert np.isnan(decoded(one / zero)).all() and np.isnan(decoded(sn.log(zero))).all()
    assert np.isnan(sn.quantize([np.inf, -np.inf], table)).all()
    assert np.isnan(sn.quantize(np.full(5000, -np.inf, np.float32), table)).all()
    assert np.isnan(sn.quantize(np.array([np.inf], object).astype(float), table)).all()
    assert sn.quantize([1e30, -1e30], table).tolist() == [2, -2]
    assert sn.quantize([np.inf, -np.inf], table, overflow="saturate").tolist() == [2, -2]
    assert decoded(sn.divide(one, zero, overflow="saturate")).tolist() == [2, -2]
    bare = sn.CustomFormat.from_table([0.0, 1.0, 2.0, -1.0])
    assert sn.quantize([np.inf, -np.inf], bare).tolist() == [2, -1]


@pytest.mark.parametrize("name", ["posit8", "posit3_es1", "posit16", "posit32", "takum_linear8", "takum_linear32"])
def test_the_reference_says_the_same(name):
    fmt = sn.format(name)
    for code in drawn(name, 300, 1)[0].tolist():
        value, want = reference.decode(code, fmt), DEFINED[name].value(code)
        assert value == reference.decode(code, name)
        assert value.kind == "nan" if want is None else value.fraction == want
    for op, count in (("add", 2), ("multiply", 2), ("divide", 2), ("remainder", 2), ("sqrt", 1), ("fma", 3)):
        codes = drawn(name, 200, count)
        found = [getattr(reference, op)(*map(int, row), fmt) for row in codes.T]
        assert [code for code, _ in found] == getattr(sn.ops, op)(*codes, fmt).tolist()
        assert not any(flags for _, flags in found)


def made(*arguments, count=None):
    spec = VectorSpec.make(*arguments[:2], **(arguments[2] if len(arguments) > 2 else {}))
    return spec, list(plan(spec, count=count).blocks())


def test_vectors():
    for op, name, options, count in (
        ("add", "posit8", {}, None), ("fma", "posit16", {}, 3000), ("divide", "takum_linear32", {}, 2000),
        ("convert", "posit32", {"out_fmt": "binary16", "rounding": "up"}, 2000), ("sqrt", "posit3", {}, None),
        ("convert", "e5m2", {"out_fmt": "posit8"}, None),
    ):  # fmt: skip
        spec, blocks = made(op, name, options, count=count)
        coverage = Coverage(spec)
        for block in blocks:
            coverage.add(block)
            if op != "convert":
                assert np.array_equal(block.result, getattr(sn.ops, op)(*block.operands, name))
                assert not block.flags.any()
        assert "class of the result" in str(coverage)
    with pytest.raises(ValueError, match="to nearest, ties to even"):
        VectorSpec.make("add", "posit8", rounding="up")


def test_vectors_of_units(tmp_path):
    for op, unit, options in (
        ("dot", sn.ExactDotUnit("posit16", operand="posit8"), {"length": 5}),
        ("dot", sn.ExactDotUnit("posit32", operand="posit32"), {"length": 3, "with_c": True}),
        ("dot", sn.MadUnit("binary32", operand="takum_linear16"), {"length": 4}),
        ("gemm", sn.ExactDotUnit("takum_linear8", operand="posit8"), {"shape": (2, 1, 3)}),
    ):
        spec = UnitSpec.make(op, unit, **options)
        (block,) = plan(spec, count=200).blocks()
        for i in range(0, 200, 23) if op == "dot" else ():
            a, b, *c = (sn.Array(x[i], f) for x, f in zip(block.operands, spec.formats, strict=True))
            want = sn.matmul(a.reshape(1, -1), b.reshape(-1, 1), unit, *(x.reshape(1, 1) for x in c))
            want = sn.encode(want, unit.result) if isinstance(want, np.ndarray) else want.codes
            assert want[0, 0] == block.result[i]
        file = tmp_path / "v.txt"
        write(plan(spec, count=200), file)
        assert check(file).ok
    *lines, last, end = file.read_text().split("\n")
    file.write_text("\n".join([*lines, last.rsplit(" ", 1)[0] + " 8080", end]))
    assert not check(file).ok


def test_wrong_vectors_are_told(tmp_path):
    file = tmp_path / "v.csv"
    write(plan(VectorSpec.make("multiply", "posit6")), file)
    assert check(file).ok
    file.write_text(file.read_text().replace(",01,00\n", ",00,00\n"))  # underflow to zero
    report = check(file)
    assert not report.ok and "|" in str(report)


def test_numbers_beside_arrays():
    for name in ("posit8", "posit16", "takum_linear32"):
        a = sn.array([1, 2, -3], name)
        assert decoded(a * 2).tolist() == [2, 4, -6] and (a < 2).tolist() == [True, False, True]
        assert sn.array(1.5, name).shape == () and sn.quantize(1.5, name) == 1.5
        clipped = sn.operator("function (X) -> (Y) { Y = X < 0 ? 0.125 * X : X; }")(
            sn.quantize([-2.0, 1.0], name), fmt=name
        )
        assert np.asarray(clipped).tolist() == [-0.25, 1.0]
        assert sn.decode(sn.ops.from_integer(np.array([3, -7]), name), name).tolist() == [3, -7]


def test_tables_for_memories():
    rom = make_rom("exp", "posit8")
    assert rom.words.tolist() == sn.exp(np.arange(256, dtype=np.uint8), "posit8").tolist()
