"""Vectors of units: what is drawn, what results are, text, refusals; and the bins that are counted."""

import json
import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

import softnum as sn
from softnum import reference as ref
from softnum.cli import build_app
from softnum.vectors import Coverage, TextLayout, UnitSpec, VectorSpec, generate, plan, write
from softnum.vectors.plans.strata import block_size, random_block
from tests.support.cases import cases

UNITS = {
    "fused product": sn.MadUnit("e6m9", operand="e5m2"),
    "chunks": sn.MadUnit("e6m9", operand="e5m2", product="e5m2", chunk=4),
    "lanes": sn.MadUnit("binary16", operand="e4m3fn", lanes=4),
    "fixed": sn.MadUnit("q8.6", operand="q4.4", rounding="down"),
    "wrap": sn.MadUnit("q4.4", operand=("q2.2", "uq2.2"), overflow="wrap"),
    "sub-byte": sn.MadUnit("e5m2", operand="e2m1fn"),
    "stochastic": sn.MadUnit("e5m2", operand="e4m3fn", rounding="stochastic", stochastic_bits=5),
    "two roundings": sn.MadUnit(
        "e5m2", operand="e5m2", product="e5m2", rounding="stochastic", product_rounding="stochastic", stochastic_bits=3
    ),
    "tensor core": sn.unit("nvidia_v100_fp16"),
    "exact": sn.ExactDotUnit("binary16", operand="e4m3fn"),
    "kahan": sn.MadUnit("binary16", operand="e4m3fn", compensated="kahan"),
}  # fmt: skip


def run(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments], catch_exceptions=False)


def wanted(unit, a, b, c, words):
    """By `dot`, which knows nothing of vectors."""
    operands = [sn.Array(np.ascontiguousarray(x), f) for x, f in zip((a, b), unit.operand, strict=True)]
    start = None if c is None else sn.Array(np.array(c), unit.c_format)
    if words is not None:
        words = np.ascontiguousarray(words).reshape(1, 1, -1, 2)
    result = sn.dot(*operands, unit, start, random_bits=words)
    return int(sn.encode(result, unit.result)) if not isinstance(result, sn.Array) else int(result.codes)


@cases("with_c", [False, True])
@cases("name", UNITS)
def test_dot(name, with_c):
    unit = UNITS[name]
    spec = UnitSpec.make("dot", unit, length=7, with_c=with_c)
    (block,) = plan(spec, count=150, seed=3).blocks()
    assert [x.shape for x in block.operands[:2]] == [(150, 7)] * 2 and block.flags is None
    a, b, *c = block.operands
    for i in range(0, 150, 3):
        words = None if block.random_bits is None else block.random_bits[i]
        assert block.result[i] == wanted(unit, a[i], b[i], c[0][i] if c else None, words), i


@cases("with_c", [False, True])
@cases("name", ["fused product", "chunks", "fixed", "wrap", "stochastic", "two roundings", "kahan"])
def test_mac(name, with_c):
    unit = UNITS[name]
    if unit.stochastic and unit.chunk:
        pytest.skip("no step has the words of a chunk's sum")
    spec = UnitSpec.make("mac", unit, length=9, with_c=with_c)
    (block,) = plan(spec, count=100, seed=1).blocks()  # the last sequence is cut short
    first, a, b, *c = block.operands
    assert np.flatnonzero(first).tolist() == list(range(0, 100, 9))
    for i in range(100):
        start = i - i % 9
        words = None if block.random_bits is None else block.random_bits[start : i + 1]
        here = slice(start, i + 1)
        assert block.result[i] == wanted(unit, a[here], b[here], c[0][start] if c else None, words), i


@pytest.mark.parametrize("name", ["fused product", "stochastic", "tensor core"])
def test_gemm(name):
    unit = UNITS[name]
    spec = UnitSpec.make("gemm", unit, shape=(2, 3, 4), with_c=True)
    (block,) = plan(spec, count=64).blocks()
    a, b, c = block.operands
    for i in range(0, 64, 7):
        for m in range(2):
            for n in range(3):
                words = None if block.random_bits is None else block.random_bits[i].reshape(2, 3, -1)[m, n]
                left, right = a[i].reshape(2, 4)[m], b[i].reshape(4, 3)[:, n]
                assert block.result[i][3 * m + n] == wanted(unit, left, right, c[i][3 * m + n], words)


@cases("op", ["dot", "mac", "gemm"])
@cases("name", ["fused product", "sub-byte", "stochastic", "wrap"])
def test_text_and_back(name, op):
    spec = UnitSpec.make(op, UNITS[name], with_c=True, **({"shape": (2, 1, 3)} if op == "gemm" else {"length": 3}))
    layout = TextLayout(spec)
    for block in plan(spec, count=500).blocks():
        text = layout.format(block)
        back = layout.parse(text)
        for x, y in zip(block.columns, back.columns, strict=True):
            assert x.dtype == y.dtype and np.array_equal(x, y)
    line = text.splitlines()[0].split()
    assert [len(entry) for entry in line] == [c.digits for c in spec.columns]
    column = next(i for i, c in enumerate(spec.columns) if c.name == "a")
    codes, c = np.atleast_1d(block.columns[column][0]), spec.columns[column]
    assert int(line[column], 16) == sum(int(x) << i * c.bits for i, x in enumerate(codes))  # element 0 lowest
    assert layout.parse(text.replace(b"\n", b"G\n", 1)) is None
    if spec.columns[column].width % 4:
        whole = text.splitlines(keepends=True)[0]
        assert layout.parse(b"F" * spec.columns[column].digits + whole[spec.columns[column].digits :]) is None


def test_exhaustive_where_it_fits():
    spec = UnitSpec.make("dot", UNITS["sub-byte"], length=2)
    p = plan(spec)
    assert (p.method, p.count) == ("exhaustive", 1 << 16)
    a, b = (x.astype(int) for x in next(p.blocks()).operands)
    assert len(np.unique(a[:, 0] + 16 * a[:, 1] + 256 * b[:, 0] + 4096 * b[:, 1])) == 1 << 16


def test_same_seed_same_vectors_and_any_beginning_has_all_strata():
    spec = UnitSpec.make("dot", UNITS["fused product"], length=8)
    one, two, other = (random_block(spec, seed, 4) for seed in (1, 1, 2))
    assert all(np.array_equal(x, y) for x, y in zip(one, two, strict=True))
    assert not np.array_equal(one[0], other[0])
    (block,) = plan(spec, count=640).blocks()
    assert len(np.unique(block.result)) > 300 and block_size(spec) % 64 == 0
    values = sn.decode(block.result, unit_format := spec.out_fmt)
    assert np.isnan(values).any() and np.isinf(values).any() and (values == 0).any()
    assert (np.abs(values[np.isfinite(values)]) < unit_format.smallest_normal).any()


def test_header_and_command(tmp_path):
    path = tmp_path / "v.txt"
    spec = UnitSpec.make("mac", "MadUnit('e6m9', operand='e5m2', chunk=8)", length=5, with_c=True)
    write(plan(spec, count=50), path)
    command = next(line for line in path.read_text().splitlines() if line.startswith("# command: ")).removeprefix(
        "# command: softnum "
    )
    again = tmp_path / "w.txt"
    assert run(*shlex.split(command), "-o", again).exit_code == 0
    assert again.read_bytes() == path.read_bytes()


@cases(
    "arguments, options, message",
    [
        (("dot", "no_such_unit"), {}, "unknown unit 'no_such_unit'"),
        (("dot", "MadUnit('e6m9', operand='e5m2'"), {}, "no expression of a unit"),
        (("dot", "__import__('os').getcwd()"), {}, "no expression of a unit"),
        (("dot", "open('x')"), {}, r"at \"open\('x'\)\"; known are MadUnit"),
        (("sum", "nvidia_v100_fp16"), {}, "unknown operation of a unit 'sum'"),
        (("mac", "nvidia_v100_fp16"), {}, "one product at a time"),
        (("dot", UNITS["fixed"]), {"length": 0}, r"K must lie in 1\.\.4096, got 0"),
        (("dot", UNITS["fixed"]), {"length": 4097}, "4097"),
        (("gemm", UNITS["fixed"]), {"shape": (99, 99, 2)}, r"must not exceed 4096, got 99 \* 99 \* 2"),
        (("gemm", UNITS["fixed"]), {"length": 3}, "takes a shape"),
        (("dot", UNITS["fixed"]), {"shape": (1, 1, 3)}, "takes a length"),
        (("mac", "ocp_mxfp8_e4m3"), {}, "one product at a time"),
        (("dot", sn.MadUnit("binary32", operand=sn.CustomFormat.from_table([0.0, 1.0], name="t"))), {}, "value table"),
    ],
)
def test_unusable_specs(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        UnitSpec.make(*arguments, **options)


def test_units_that_a_file_cannot_state():
    with pytest.raises(TypeError, match="dot: vectors of a CustomMadUnit .* supported: MadUnit, FusedDotUnit, "):
        UnitSpec.make("dot", sn.CustomMadUnit(lambda acc, a, b: acc, operand="e5m2"))


def test_sums_of_every_shape_cancel():
    for op, size in (("dot", {"length": 8}), ("gemm", {"shape": (2, 3, 8)}), ("gemm", {"shape": (3, 3, 4)})):
        unit = sn.MadUnit("binary32", operand="e4m3fn")
        (block, *_) = plan(UnitSpec.make(op, unit, **size), count=640).blocks()
        m, n, k = size.get("shape", (1, 1, 8))
        a, b = (sn.decode(x, "e4m3fn").astype(float) for x in block.operands)
        with np.errstate(invalid="ignore"):
            size_of_terms = np.abs(a).reshape(-1, m, k) @ np.abs(b).reshape(-1, k, n)
            left = np.abs(sn.decode(block.result, "binary32").astype(float).reshape(-1, m, n))
            assert np.mean(left < 0.25 * size_of_terms) > 0.12, (op, size)  # 12 of 64 vectors are drawn so


def test_generate_tells_operations_and_units_apart():
    assert len(next(generate("dot", unit=UNITS["fixed"], length=2, count=10))) == 10
    with pytest.raises(ValueError, match="leave unit= out"):
        generate("multiply", "e5m2", unit=UNITS["fixed"])
    with pytest.raises(ValueError, match="give unit="):
        generate("dot", "e5m2")


# -- coverage ----------------------------------------------------------------------------------------------------------
def counted(spec, **options):
    coverage = Coverage(spec)
    for block in plan(spec, **options).blocks():
        coverage.add(block)
    return coverage


@cases("op", ["add", "multiply", "fma", "divide", "sqrt"])
@cases("fmt", ["binary16", "binary32", "e4m3fn", "q8.8"])
def test_a_default_set_hits_every_class_and_binade(op, fmt):
    coverage = counted(VectorSpec.make(op, fmt), count=100_000)
    for name, bins in coverage.groups.items():
        if bins.reachable is not None:
            assert not bins.missed, (name, bins.missed)
    rounded = dict(zip(coverage.groups["rounded off"].labels, coverage.groups["rounded off"].counts, strict=True))
    ties = 0 if op == "sqrt" else 1
    if (op, fmt) == ("add", "q8.8"):
        return  # always exact
    assert min(rounded["nothing"], rounded["less than half"], rounded["more than half"]) > 0
    assert rounded["half"] >= ties and (fmt == "q8.8" or rounded["carry"] > 0)


def test_counts_are_right():
    """Against the reference, vector by vector."""
    spec = VectorSpec.make("multiply", "e3m2fn")
    coverage = counted(spec)
    exact = {"nothing": 0, "less than half": 0, "half": 0, "more than half": 0}
    for a in range(64):
        for b in range(64):
            x, y = ref.decode(a, spec.out_fmt), ref.decode(b, spec.out_fmt)
            low, flags = ref.multiply(a, b, spec.out_fmt, rounding="toward_zero")
            high, _ = ref.multiply(a, b, spec.out_fmt, rounding="away_from_zero")
            if flags & sn.Flags.OVERFLOW:
                continue
            value = abs(x.fraction * y.fraction)
            below, above = (abs(ref.decode(c, spec.out_fmt).fraction) for c in (low, high))
            if below == above:
                exact["nothing"] += 1
            else:
                part = (value - below) / (above - below)
                exact["less than half" if part < 0.5 else "half" if part == 0.5 else "more than half"] += 1
    bins = coverage.groups["rounded off"]
    assert {k: v for k, v in zip(bins.labels, bins.counts.tolist(), strict=True) if k != "carry"} == exact
    assert coverage.vectors == 4096 and coverage.groups["classes of a, b"].counts.sum() == 4096


def test_marks_at_the_limits_are_the_format_s_own():
    marks = {}
    for name in ("e5m2", "dlfloat16", "e8m0fnu", "e4m0"):
        fmt = sn.format(name) if name != "e4m0" else sn.FloatFormat(4, 0, specials="none")
        marks[name] = counted(VectorSpec.make("multiply", fmt), count=2000).groups["results at the limits"].labels[:-2]
    plain = ["smallest value", "beside the largest", "largest value"]
    assert marks["e5m2"] == ["smallest value", "largest subnormal", "smallest normal", *plain[1:]]
    assert marks["dlfloat16"] == marks["e8m0fnu"] == marks["e4m0"] == plain


def test_coverage_as_data(tmp_path):
    out = tmp_path / "coverage.json"
    done = run(
        "vectors", "generate", "--op", "add", "--format", "e5m2", "-o", tmp_path / "v.txt", "--coverage-out", out
    )
    assert done.exit_code == 0 and "classes of a, b" in done.stderr
    told = json.loads(out.read_text())
    assert told["vectors"] == 65536 and {g["name"] for g in told["groups"]} >= {"classes of a, b", "rounded off"}
    assert sum(told["groups"][0]["counts"].values()) == 65536


def test_the_random_words_of_a_compensated_sequence_count():
    """Products rounded stochastically, sums compensated: every step's words, from the sequence's first on."""
    parts = dict(operand="e4m3fn", product="e5m4", stochastic_bits=6, compensated="kahan")
    spec = UnitSpec.make("mac", sn.MadUnit("e5m6", product_rounding="stochastic", **parts), length=6)
    (block,) = plan(spec, count=60, seed=1).blocks()
    first, a, b, words, results = (x.tolist() for x in block.columns)
    begin = 0
    for i, result in enumerate(results):
        begin = i if first[i] else begin
        want, _ = ref.mad_dot(
            a[begin : i + 1], b[begin : i + 1], accumulator="e5m6", product_rounding="stochastic",
            random_bits=words[begin : i + 1], **parts,
        )  # fmt: skip
        assert result == want, (i, result, want)
    zeros = spec.evaluate(block.operands, np.zeros_like(block.random_bits)).result
    assert (zeros != block.result).any()
