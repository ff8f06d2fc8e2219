"""Operations as circuits: equal to the core for all codes, in every environment."""

import numpy as np
import pytest

import softnum as sn
from softnum.formats.modes import ROUNDING_MODES
from softnum.vectors import Space, UnitSpec, VectorSpec, plan
from softnum.vectors.formal import DEFINED, Circuit, define, evaluate, export
from softnum.vectors.formal.aig import Aig
from softnum.vectors.formal.blast import blast
from softnum.vectors.formal.bulk import codes_of, planes_of
from softnum.vectors.formal.exhaustion import right_block
from softnum.vectors.formal.tables import TABULATED
from softnum.vectors.plans.fpu import CLASS_MASK, MINMAX_RULES
from tests.support.cases import cases

MODES = [mode for mode in ROUNDING_MODES if not mode.startswith("stochastic")]
TABLE_MODES = [mode for mode in MODES if mode != "to_odd"]
STOCHASTIC = [mode for mode in ROUNDING_MODES if mode not in MODES]
ODD = sn.FloatFormat(3, 2, lowest_binade="normal")
FLUSHED = sn.FloatFormat(4, 3, lowest_binade="zero")
FORMATS = (
    "e4m3fn",
    "e5m2",
    "e4m3fnuz",
    "e3m2fn",
    "e2m1fn",
    "binary8p3se",
    "binary6p2uf",
    "e8m0fnu",
    "q4.4",
    "posit8_es1",
    "takum_linear8",
    ODD,
    FLUSHED,
)


def inputs_of(spec, count):
    """All operands (and random bits) where there are so few, else those that vectors are made of."""
    every = 1 << sum(c.width for c in spec.input_columns)
    parts = [block.columns[: len(spec.input_columns)] for block in plan(spec, count=min(count, every)).blocks()]
    return tuple(map(np.concatenate, zip(*parts, strict=True)))


def by_gates(spec, inputs):
    graph = Aig()
    found = blast(define(spec), graph)
    planes = [p for o, c in zip(inputs, spec.input_columns, strict=True) for p in planes_of(o, c.width)]
    got = graph.evaluate(planes, found["result"] + found["flags"])
    width, count = len(found["result"]), len(inputs[0])
    return codes_of(got[:width], spec.out_fmt.storage_dtype, count), codes_of(got[width:], np.uint8, count)


def agree(spec, count=1 << 16):
    inputs = inputs_of(spec, count)
    many = len(spec.operand_columns)
    want = spec.evaluate(inputs[:many], *inputs[many:])
    result, flags = by_gates(spec, inputs)
    wrong = np.flatnonzero((result != want.result) | (flags != want.flags))
    shown = [(*(hex(o[i]) for o in inputs), hex(result[i]), int(flags[i])) for i in wrong[:3]]
    assert not len(wrong), (spec.options(), len(wrong), shown)
    assert len(inputs[0]) == min(count, 1 << sum(c.width for c in spec.input_columns))


def spec_of(op, fmt, **options):
    """Of operations whose result is of another format, too; those of tables in formats that are small enough."""
    if op == "from_integer":
        return VectorSpec.make(op, "i8", out_fmt=fmt, **options)
    return VectorSpec.make(op, fmt, out_fmt={"convert": "e3m2fn", "to_integer": "u8"}.get(op), **options)


@cases("op", [op for op in DEFINED if op not in TABULATED])
def test_every_operation_for_all_codes(op):
    agree(spec_of(op, "e4m3"), 1 << 16)


@cases("op", TABULATED)
@pytest.mark.slow
def test_every_function_for_all_codes(op):
    two = len(VectorSpec.make(op, "e2m1fn").formats) == 2
    agree(VectorSpec.make(op, "e2m1fn" if two else "e4m3fn", rounding="up", nan="x86"))


def test_functions_are_tables_of_the_reference():
    agree(VectorSpec.make("tanh", "e2m3fn", rounding="to_odd"))
    agree(VectorSpec.make("pow", "binary4p2se", out_fmt="e3m2fn"))
    agree(VectorSpec.make("rsqrt", "posit6_es1"))


#: FTZ and DAZ
FLUSHES = [dict(flush_inputs=True), *(dict(flush_results=where) for where in ("before", "after", "subnormal"))]


@cases("flush", FLUSHES, ids=str)
def test_flushing(flush):
    agree(VectorSpec.make("multiply", "e4m3fn", rounding="away_from_zero", tininess="before", **flush), 1 << 14)
    agree(VectorSpec.make("add", "e3m2", rounding="nearest_down", **flush))
    if "flush_results" in flush:
        agree(VectorSpec.make("convert", "e5m3", out_fmt=ODD, **flush))
        agree(VectorSpec.make("convert", "e5m3", out_fmt="binary6p2uf", rounding="to_odd", **flush))
    else:
        agree(VectorSpec.make("compare_quiet_less_equal", "e2m3fn", **flush))
        agree(VectorSpec.make("to_integer", ODD, out_fmt="i8", **flush))


@cases("mode", STOCHASTIC)
def test_random_bits_are_an_input(mode):
    agree(VectorSpec.make("convert", "e4m5", out_fmt="e3m2", rounding=mode, stochastic_bits=5))
    agree(VectorSpec.make("convert", "q5.5", out_fmt="q3.2", rounding=mode, stochastic_bits=2))
    agree(VectorSpec.make("convert", "e5m4", out_fmt=ODD, rounding=mode, stochastic_bits=3))
    agree(VectorSpec.make("divide", "e2m1fn", rounding=mode, stochastic_bits=3))


@cases("rule", MINMAX_RULES)
def test_whose_minimum(rule):
    agree(VectorSpec.make("minimum", "e3m4" if rule != "cuda" else "e4m3fn", minmax=rule, nan="arm"))
    if rule != "x86":
        agree(VectorSpec.make("maximum_number", "e3m2", minmax=rule))
    else:  # P3109's formats raise no flags
        agree(VectorSpec.make("maximum", "binary6p3se", minmax=rule))


def test_whose_integers_and_classes():
    for nan in ("arm", "x86", "cuda"):
        agree(VectorSpec.make("to_integer", "e4m3", out_fmt="i64" if nan == "cuda" else "i8", nan=nan, exact=False))
    agree(VectorSpec.make("classify", "e4m3", out_fmt=CLASS_MASK))
    agree(VectorSpec.make("fnmadd", "e2m1fn", rounding="down"))
    agree(VectorSpec.make("fmsub", "e3m1", nan="x86"), 1 << 14)
    agree(VectorSpec.make("multiply", "e4m3fn", nan="cuda"), 1 << 14)


def test_posits_of_16_bits():
    for spec in (
        VectorSpec.make("add", "posit16"), VectorSpec.make("multiply", "posit16_es1"),
        VectorSpec.make("divide", "posit16"), VectorSpec.make("convert", "binary16", out_fmt="posit16"),
        VectorSpec.make("convert", "posit16", out_fmt="e4m3fn", rounding="down"),
    ):  # fmt: skip
        agree(spec, 1 << 12)


@cases("fmt", ["posit8", "posit8_es1", "posit8_es0", "takum_linear8"])
@pytest.mark.slow
def test_posits_of_8_bits(fmt):
    for op in DEFINED:
        if op not in (*TABULATED, "sign_copy", "sign_negate", "sign_xor", "classify"):
            agree(spec_of(op, fmt))
    agree(VectorSpec.make("convert", "binary16", out_fmt=fmt))


@cases(
    ("unit", "length", "with_c"),
    [
        ("MadUnit('e6m9', operand='e5m2')", 2, False),
        ("MadUnit('e5m3', operand='e4m3fn', product='e5m3', rounding='down', product_rounding='up')", 2, True),
        ("MadUnit('q4.4', operand='q2.2', product='q3.3')", 3, True),
        ("MadUnit('posit8', operand='posit8')", 1, True),
        ("ExactDotUnit('e5m2', operand='e4m3', rounding='down')", 2, True),
        ("ExactDotUnit('e4m3fn', operand='e2m1fn')", 4, False),
        ("MadUnit('e5m3', operand='e4m3', lanes=2, chunk=3, reduction='pairwise', outer_accumulator='e4m3fn', "
         "product='e4m4', flush_inputs='sums', flush_results='subnormal')", 4, True),
        ("MadUnit('e4m3', operand='q2.2', compensated='kahan', flush_inputs='positive', overflow='saturate')", 3, True),
        ("FmaChainUnit('e5m3', operand='e4m3fn', k_order=(1, 0), flush_inputs=True, flush_results='after')", 3, True),
        ("FusedDotUnit(2, 4, 'e5m3', operand='e4m3fn')", 3, True),
        ("FusedDotUnit(2, 5, 'e5m6', operand=('e4m3', 'e5m2'), output='e4m3fn', truncate_fraction=3, min_exponent=-3, "
         "k_order=(1, 3, 0, 2))", 5, True),
        ("FusedDotUnit(2, 1, 'binary8p3se', operand='e3m2', c='after', overflow='always_infinity', zero_exponent=-40, "
         "output_rounding='up')", 3, True),
        ("TwoStageDotUnit(4, 5, 3, 4, 'e5m3', operand='e4m3', interleave=2, alignment='toward_zero', c_reach=6)",
         4, True),
        ("TwoStageDotUnit(4, 3, 7, 2, 'e5m3', operand='e4m3', product_limit=5, zero_exponent=-30)", 5, True),
        ("GroupedDotUnit(2, 'e5m3', operand='e4m3', scale=-3)", 3, True),
        ("GroupedDotUnit(2, 'e4m3', operand='e5m2', reduction='exact', zeros='signed', partial='e3m2', "
         "partial_rounding='down', rounding='down')", 3, True),
        ("GroupedDotUnit(2, 'e4m3', operand='e5m2', reduction='rounded', flush_inputs=True, overflow='saturate')",
         3, True),
        ("ChunkedDotUnit(FusedDotUnit(2, 4, 'e5m3', operand='e4m3fn'), 3, accumulator='e6m5', rounding='up')", 5, True),
    ],
)  # fmt: skip
def test_sums_of_units(unit, length, with_c):
    spec = UnitSpec.make("dot", unit, length=length, with_c=with_c)
    blocks = list(plan(spec, count=1 << 12).blocks())
    operands = [np.concatenate(rows) for rows in zip(*(block.operands for block in blocks), strict=True)]
    graph = Aig()
    found = blast(define(spec), graph)["result"]
    planes = [p for o, c in zip(operands, spec.operand_columns, strict=True)
              for e in o.reshape(len(o), -1).T for p in planes_of(e, c.bits)]  # fmt: skip
    got = codes_of(graph.evaluate(planes, found), spec.out_fmt.storage_dtype, len(operands[0]))
    assert np.array_equal(got, np.concatenate([block.result for block in blocks])) and len(got) == 1 << 12


QUARTERS = sn.CustomFormat.from_table([-2.0, -0.6875, 0.5, -0.25, 0.0, 0.125, 0.328125, 1.75], name="mixed")  # no NaN
WITH_NAN = sn.CustomFormat.from_table([float("nan"), 3.0, 0.25, -1.0, 0.0, 8.0, -0.5, float("nan")], name="with_nan")


@cases("fmt", [QUARTERS, WITH_NAN], ids=str)
def test_tables_of_values(fmt):
    nan = fmt is WITH_NAN
    for i, op in enumerate(op for op in DEFINED if op not in TABULATED):
        if op in ("convert", "to_integer", "from_integer", "classify") or op.startswith(("sign_", "fm", "fnm")):
            continue
        overflow = "saturate" if i % 3 == 0 and not op.startswith("compare") else None
        agree(VectorSpec.make(op, fmt, rounding=TABLE_MODES[i % 9], overflow=overflow))
    for mode in TABLE_MODES:
        agree(VectorSpec.make("convert", "e5m2", out_fmt=fmt, rounding=mode, overflow=None if nan else "saturate"))
    agree(VectorSpec.make("fma", fmt))
    agree(VectorSpec.make("multiply", (fmt, "e3m2"), out_fmt="e4m3", rounding="up"))
    agree(VectorSpec.make("to_integer", fmt, out_fmt="i8", rounding="down"))


@cases(
    ("unit", "length", "with_c"),
    [
        ("BlockDotUnit('binary32', operand='mxfp4')", 2, True),
        ("BlockDotUnit('e4m3', operand='mxfp8_e5m2', rounding='down', product='e5m3')", 2, False),
        ("BlockDotUnit('e5m3', operand=BlockFormat('e2m1fn', 'e4m3fn', 2), "
         "inner=FusedDotUnit(2, 3, 'e5m3', operand='e2m1fn'))", 5, True),
        ("BlockFusedDotUnit(4, 8, 'e5m6', operand='mxfp4', group=2)", 4, True),
        ("BlockFusedDotUnit(2, 5, 'e5m3', operand=BlockFormat('e4m3', 'e4m3fn', 2), truncate_fraction=3, "
         "zero_exponent=-40)", 3, True),
    ],
)  # fmt: skip
def test_sums_of_blocks(unit, length, with_c):
    spec = UnitSpec.make("dot", unit, length=length, with_c=with_c)
    rng, operands = np.random.default_rng(6), []
    for column in spec.operand_columns:
        codes = rng.integers(0, 1 << column.bits, (1 << 11, column.count))
        if column.name.startswith("scale"):  # most of them near one
            near = column.format.codec.encode(np.exp2(rng.integers(-3, 4, codes.shape) / 1), column.format)
            codes = np.where(rng.random(codes.shape) < 0.9, near, codes)
        operands.append(codes.astype(column.dtype) if column.count > 1 else codes[:, 0].astype(column.dtype))
    graph = Aig()
    found = blast(define(spec), graph)["result"]
    planes = [p for o, c in zip(operands, spec.operand_columns, strict=True)
              for e in o.reshape(len(o), -1).T for p in planes_of(e, c.bits)]  # fmt: skip
    got = codes_of(graph.evaluate(planes, found), spec.out_fmt.storage_dtype, 1 << 11)
    want = spec.evaluate(operands).result
    assert np.array_equal(got, want) and len(np.unique(want)) > 50


def test_a_fused_step_for_all_codes():
    spec = UnitSpec.make("dot", "FusedDotUnit(2, 1, 'e2m1', operand='e2m1')", length=2, with_c=True)
    index = np.arange(1 << 20)
    words = index >> 12, index >> 4 & 255, index & 15
    graph = Aig()
    found = blast(define(spec), graph)["result"]
    planes = [p for word, c in zip(words, spec.operand_columns, strict=True) for p in planes_of(word, c.width)]
    got = codes_of(graph.evaluate(planes, found), np.uint8, len(index))
    assert np.array_equal(got, right_block(spec, tuple(w.astype(object) for w in words)).result)


def test_a_space_is_an_output():
    space = Space.make(no_nan=True, no_subnormal=True, exponents="-3:2")
    spec = VectorSpec.make("add", ("e4m3fn", "e5m2"), out_fmt="e4m3fn", space=space)
    a, b = (v.ravel() for v in np.mgrid[0:256, 0:256].astype(np.uint8))
    graph = Aig()
    admitted = blast(define(spec), graph)["admitted"]
    found = codes_of(graph.evaluate([*planes_of(a, 8), *planes_of(b, 8)], admitted), np.uint8, len(a))
    assert np.array_equal(found, space.admits(spec.formats, (a, b))) and 0 < found.sum() < len(a)
    assert b"\n(assert (= admitted #b1))\n" in export(spec) and b" constraint " in export(spec, "btor2")


WIDE_OPS = ("add", "multiply", "divide", "fma", "sqrt")


@cases("i, fmt", enumerate(FORMATS), ids=[str(f) for f in FORMATS])
def test_every_kind_of_format(i, fmt):
    narrow = str(fmt) != "e8m0fnu"  # whose roots and quotients have hundreds of bits
    modes = ["nearest_even"] * 2 if "posit" in str(fmt) or "takum" in str(fmt) else [MODES[i % 10], MODES[(i + 5) % 10]]
    agree(VectorSpec.make(WIDE_OPS[i % 5] if narrow else "add", fmt, rounding=modes[0]), 1 << 12)
    agree(VectorSpec.make("convert", "e5m3", out_fmt=fmt, rounding=modes[1]))


@cases("fmt", FORMATS, ids=str)
@pytest.mark.slow
def test_every_operation_of_every_kind_of_format(fmt):
    for i, op in enumerate(op for op in DEFINED if op not in TABULATED):
        try:
            spec = spec_of(op, fmt, rounding=MODES[i % 10])
            spec.evaluate(inputs_of(spec, 1 << 4))
        except ValueError:  # a sign of what has none
            continue
        agree(spec)


@cases("mode", MODES)
def test_every_mode(mode):
    overflow = ("infinity", "saturate", "saturate_finite")[MODES.index(mode) % 3]
    tininess = ("after", "before")[MODES.index(mode) % 2]
    agree(VectorSpec.make("multiply", "e5m2", rounding=mode, overflow=overflow, tininess=tininess), 1 << 14)
    agree(VectorSpec.make("subtract", "binary6p3se", rounding=mode))
    agree(VectorSpec.make("round_to_integral", "e4m3", rounding=mode, exact=False))


@cases("nan", ["canonical", "x86", "arm"])
def test_which_nan(nan):
    agree(VectorSpec.make("fma", ("e5m2", "e4m3", "e3m4"), out_fmt="e5m2", nan=nan), 1 << 14)
    agree(VectorSpec.make("maximum", "e3m4", nan=nan))


def test_wider_formats_and_steps_of_units():
    agree(VectorSpec.make("fma", "binary16", rounding="down"), 1 << 12)
    agree(VectorSpec.make("fma", ("e5m2", "e5m2", "e6m9"), out_fmt="e6m9"), 1 << 12)
    agree(VectorSpec.make("fma", ("q4.4", "q4.4", "q8.6"), out_fmt="q8.6", overflow="wrap"), 1 << 12)
    agree(VectorSpec.make("multiply", "bfloat16", out_fmt="binary16"), 1 << 12)


@pytest.mark.slow
def test_formats_of_hundreds_of_bits():
    agree(VectorSpec.make("add", "binary32"), 1 << 14)
    agree(VectorSpec.make("fma", "bfloat16"), 1 << 14)
    agree(VectorSpec.make("multiply", "binary64", rounding="to_odd"), 1 << 10)


def test_words_and_gates_are_one_circuit():
    spec = VectorSpec.make("divide", "e3m2fn", rounding="to_odd")
    operands = inputs_of(spec, 1 << 12)
    words = evaluate(define(spec), dict(zip("ab", operands, strict=True)))
    result, flags = by_gates(spec, operands)
    assert np.array_equal(words["result"], result) and np.array_equal(words["flags"], flags)
    with pytest.raises(ValueError, match="a has 6 bits: from 0 to 63"):
        evaluate(define(spec), {"a": [64], "b": [0]})
    with pytest.raises(ValueError, match="inputs a were given; the circuit's are a, b"):
        evaluate(define(spec), {"a": [1]})


def test_every_word_operation():
    c = Circuit()
    a, b = c.input("a", 5), c.input("b", 5)
    made = {
        "sum": a + b, "difference": a - b, "product": a * b, "quotient": a // b, "left": a << b[:3], "right": a >> b,
        "less": a < b, "equal": a == b, "mux": c.ite(a[0], b, 7), "bits": c.concat(a[1:4], ~b), "more": a > 9,
    }  # fmt: skip
    for name, bits in made.items():
        c.output(name, bits)
    x, y = (v.ravel() for v in np.mgrid[0:32, 0:32])
    want = {
        "sum": (x + y) % 32, "difference": (x - y) % 32, "product": x * y % 32,
        "quotient": np.where(y, x // np.maximum(y, 1), 31), "left": (x << y % 8) % 32, "right": x >> y, "less": x < y,
        "equal": x == y, "mux": np.where(x & 1, y, 7), "bits": (x >> 1 & 7) << 5 | 31 - y, "more": x > 9,
    }  # fmt: skip
    words = evaluate(c, {"a": x, "b": y})
    graph = Aig()
    outputs = blast(c, graph)
    planes = [p for v in (x, y) for p in planes_of(v.astype(np.uint8), 5)]
    for name, values in want.items():
        assert np.array_equal(words[name].astype(int), values.astype(int)), name
        gates = codes_of(graph.evaluate(planes, outputs[name]), np.uint8, 1024)
        assert np.array_equal(gates, values.astype(int)), name


@cases(
    ("make", "message"),
    [
        (
            lambda: define(VectorSpec.make("exp", "e5m2", rounding="sr")),
            "exp: its circuit is a table, and takes no",
        ),
        (lambda: define(VectorSpec.make("exp", "e5m6")), "its circuit is a table, of at most 10 operand bits, not 12"),
        (lambda: define(VectorSpec.make("add", "takum8")), "takum8 has no circuit: it is neither a binary float"),
        (
            lambda: define(VectorSpec.make("tanh", WITH_NAN)),
            "tanh of with_nan: no circuit; the reference has no functions",
        ),
        (
            lambda: define(VectorSpec.make("add", sn.CustomFormat.from_table(range(2048), name="wide"))),
            "a table of values has one of at most 10 bits and values of 512 places, not of 11 and 11; prove it by",
        ),
        (
            lambda: define(VectorSpec.make("add", sn.CustomFormat.from_table([1, 2], name="two"))),
            "a table with neither NaN nor 0 has no code for a result that is NaN",
        ),
        (
            lambda: define(VectorSpec.make("add", "e5m2", space=Space.make(only="ties"))),
            "only: the circuit of",
        ),
        (
            lambda: define(UnitSpec.make("dot", "MadUnit('e5m2', operand='e5m2', rounding='sr')")),
            "no circuit: it rounds by random bits; prove it by exhaustion",
        ),
        (
            lambda: define(UnitSpec.make("dot", "FusedDotUnit(2, 4, 'e5m2', operand='e5m2', min_exponent=60000)")),
            "the terms' exponents span 60028 binades, from -28; circuits of aligned sums have at most 8192",
        ),
        (
            lambda: define(UnitSpec.make("dot", "MadUnit('e5m2', operand='e5m2', lanes=1024)")),
            "no circuit of length 16: it would have 1040 additions, and circuits at most 1024; state a smaller",
        ),
        (lambda: define(VectorSpec.make("add", "e12m2")), "e12m2 has 12 exponent bits; circuits have at most 11"),
        (lambda: export(VectorSpec.make("add", "e5m2"), "vhdl"), "unknown file 'vhdl' for provers; there are smt2"),
        (lambda: Circuit().input("a", 2) + Circuit().input("b", 3), "add of 2 and 3 bits: the widths must agree"),
    ],
)
def test_what_has_no_circuit_is_an_error(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_space_of_a_sum_holds_for_each_element_and_scale():
    space = Space.make(no_nan=True, no_subnormal=True)
    spec = UnitSpec.make("dot", "BlockDotUnit('e5m2', operand='mxfp8_e5m2')", length=2, with_c=True, space=space)
    rng = np.random.default_rng(7)
    operands = [rng.integers(0, 256, (1 << 11, c.count)).astype(np.uint8) for c in spec.operand_columns]
    operands[2][::3], operands[3][1::3] = 255, 255  # NaN
    operands = [x if x.shape[1] > 1 else x[:, 0] for x in operands]
    graph = Aig()
    admitted = blast(define(spec), graph)["admitted"]
    planes = [p for o in operands for e in o.reshape(len(o), -1).T for p in planes_of(e, 8)]
    found = codes_of(graph.evaluate(planes, admitted), np.uint8, 1 << 11)
    want = space.admits([c.format for c in spec.operand_columns], operands)
    assert np.array_equal(found, want) and 0 < want.sum() < 700
