"""ChunkedDotUnit: sums of chunks in any unit, added in an accumulator of their own, in each part of softnum."""

import io
import pickle

import numpy as np
import pytest

import softnum as sn
from softnum.mac.presets import unit_of
from softnum.mac.products.engines import fast_of
from softnum.train import Settings, load_design, run
from softnum.train.runs.record import read_lines
from softnum.vectors import TextLayout, UnitSpec, check
from softnum.vectors.plans.spec import Block
from tests.support.cases import cases

H100 = sn.unit("nvidia_h100_e4m3")
UNITS = {
    "tensor core": sn.ChunkedDotUnit(H100, 64),
    "tensor core into binary16": sn.ChunkedDotUnit(sn.unit("nvidia_v100_fp16", output="binary16"), 12),
    "steps in bfloat16": sn.ChunkedDotUnit(sn.MadUnit("bfloat16", operand="bfloat16"), 10),
    "exact sums": sn.ChunkedDotUnit(sn.ExactDotUnit("e6m9", operand="e5m2"), 7, "e6m9", "toward_zero"),
    "narrower outside": sn.ChunkedDotUnit(sn.MadUnit("binary32", operand="e4m3fn"), 16, "e5m2", overflow="saturate"),
    "wider outside": sn.ChunkedDotUnit(sn.MadUnit("e6m9", operand="e5m2"), 16, "binary64", "down"),
    "fixed point": sn.ChunkedDotUnit(sn.MadUnit("q8.8", operand="q4.4"), 5, "q6.6", "nearest_away", "wrap"),
    "a chain": sn.ChunkedDotUnit(sn.unit("x86_avx512_bf16"), 8),
    "lanes": sn.ChunkedDotUnit(sn.MadUnit("binary16", operand="binary16", lanes=3, chunk=5), 11, "binary16"),
}


def operands(unit, m, k, n, seed, wild=True):
    """Codes of operands and of C, as Arrays; wild: any codes, infinities and NaN among them."""
    rng = np.random.Generator(np.random.Philox(seed))

    def codes(fmt, shape):
        if wild:
            return sn.Array(rng.integers(0, 1 << fmt.bits, shape, dtype=np.uint64).astype(fmt.storage_dtype), fmt)
        return sn.array(rng.standard_normal(shape), fmt)

    return (*(codes(f, s) for f, s in zip(unit.operand, ((m, k), (k, n)), strict=True)), codes(unit.result, (m, n)))


def bits(x):
    x = np.asarray(sn.decode(x.codes, x.format) if isinstance(x, sn.Array) else x, np.float64)
    return np.where(np.isnan(x), np.nan, x).view(np.uint64)


@pytest.mark.slow
@cases("wild", [True, False])
@cases("name", UNITS)
def test_products_are_those_of_the_trace(name, wild, isa):
    unit = UNITS[name]
    a, b, c = operands(unit, 4, 33, 5, 3, wild)
    for start in (None, c):
        want = np.empty((4, 5))
        for m, n in np.ndindex(want.shape):
            want[m, n] = unit.trace(a[m], b[:, n], None if start is None else start[m, n]).result
        values = [None if x is None else sn.decode(x.codes, x.format) for x in (a, b, start)]
        np.testing.assert_array_equal(bits(sn.matmul(a, b, unit, start)), bits(want))
        np.testing.assert_array_equal(bits(sn.matmul(*values[:2], unit, values[2])), bits(want))


@cases("name", UNITS)
def test_both_engines_threads_and_parts(name, isa):
    unit = UNITS[name]
    a, b, c = operands(unit, 70, 40, 130, 5, wild=False)
    want, stats = sn.matmul(a, b, unit, c, return_stats=True)  # by the definition
    values = [sn.decode(x.codes, x.format) for x in (a, b, c)]
    for threads in (1, 2):
        np.testing.assert_array_equal(bits(sn.matmul(*values[:2], unit, values[2], threads=threads)), bits(want))
        _, again = sn.matmul(a, b, unit, c, return_stats=True, threads=threads)
        assert again == stats
    assert stats["outer sum"].roundings == 70 * 130 * -(-40 // unit.chunk)
    batch = sn.matmul(np.stack([values[0]] * 2), values[1], unit, values[2])
    np.testing.assert_array_equal(bits(batch[1]), bits(want))


def test_which_have_a_fast_engine():
    slow = {name for name, unit in UNITS.items() if fast_of(unit) is None}
    assert slow == {"wider outside"}


@cases("outer", ["binary32", "e6m9", "bfloat16"])
@cases("rounding", ["nearest_even", "up"])
def test_a_mad_unit_with_chunks_is_the_same(outer, rounding):
    inner = {"operand": "e5m2", "rounding": rounding}
    own = sn.MadUnit("e6m9", chunk=16, outer_accumulator=outer, **inner)
    unit = sn.ChunkedDotUnit(sn.MadUnit("e6m9", **inner), 16, outer, rounding)
    a, b, c = operands(own, 9, 100, 11, 8)
    np.testing.assert_array_equal(bits(sn.matmul(a, b, unit, c)), bits(sn.matmul(a, b, own, c)))


def test_a_format_is_known_by_its_facts_and_not_by_its_name(isa):
    unit = sn.ChunkedDotUnit(sn.MadUnit("e6m9", operand="e5m2"), 1, sn.FloatFormat(8, 4, name="binary32"))
    a, b = np.float32([[1, 1]]), np.float32([[1], [2.0**-5 * 1.5]])
    assert sn.matmul(a, b, unit).item() == 1.0625 == sn.matmul(sn.array(a, "e5m2"), sn.array(b, "e5m2"), unit).item()


def test_what_promotion_keeps():
    a, b = np.ones((1, 4096), np.float32), np.full((4096, 1), 2.0**-9, np.float32)
    a[0, 0], b[0, 0] = 256, 1
    exact = 256 + 4095 * 2.0**-9
    errors = [abs(sn.matmul(a, b, sn.ChunkedDotUnit(H100, n)).item() - exact) for n in (4096, 1024, 128, 32)]
    assert errors == sorted(errors, reverse=True) and errors[0] == exact - sn.matmul(a, b, H100).item()


def test_no_products_and_short_sums():
    unit = UNITS["tensor core"]
    a, b = np.ones((2, 0), np.float32), np.ones((0, 3), np.float32)
    assert np.array_equal(sn.matmul(a, b, unit), np.zeros((2, 3)))
    assert np.array_equal(sn.matmul(a, b, unit, np.float32(2.5)), np.full((2, 3), 2.5))
    assert sn.dot(np.float32([2, 3]), np.float32([4, 5]), unit) == 23


def test_convolutions():
    rng = np.random.Generator(np.random.Philox(9))
    unit = sn.ChunkedDotUnit(H100, 32)
    x, w = (sn.quantize(rng.standard_normal(s).astype(np.float32), "e4m3fn") for s in ((2, 6, 7, 7), (5, 6, 3, 3)))
    rows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3)).transpose(0, 2, 3, 1, 4, 5).reshape(-1, 54)
    want = sn.matmul(np.ascontiguousarray(rows), np.ascontiguousarray(w.reshape(5, -1).T), unit)
    got = sn.conv2d(x, w, unit)
    assert np.array_equal(got.transpose(0, 2, 3, 1).reshape(-1, 5), want)


@cases("name", UNITS)
def test_as_text_and_as_a_pickle(name):
    unit = UNITS[name]
    assert unit_of(unit.expression) == unit == pickle.loads(pickle.dumps(unit))
    assert f"chunks of {unit.chunk}" in str(unit)


@cases(
    "make, error, message",
    [
        (lambda: sn.ChunkedDotUnit(H100, 0), ValueError, "chunk must be a positive integer"),
        (lambda: sn.ChunkedDotUnit(H100, True), ValueError, "chunk must be a positive integer"),
        (lambda: sn.ChunkedDotUnit("nvidia_h100_e4m3", 8), TypeError, "inner must be a unit, got 'nvidia_h100_e4m3'"),
        (lambda: sn.ChunkedDotUnit(H100, 8, rounding="stochastic"), ValueError, "is stochastic; take another"),
        (lambda: sn.ChunkedDotUnit(H100, 8, "mxfp4"), ValueError, "is a block format"),
        (lambda: sn.ChunkedDotUnit(H100, 8, overflow="wrap"), ValueError, "wrap"),
        (lambda: sn.ChunkedDotUnit(sn.BlockDotUnit("binary32", operand="mxfp4"), 8), ValueError, "have blocks"),
        (
            lambda: sn.ChunkedDotUnit(sn.MadUnit("e6m9", operand="e5m2", rounding="stochastic"), 8), ValueError,
            "of a MadUnit state chunk= itself",
        ),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)  # fmt: skip
def test_what_does_not_fit(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_sums_and_cuda_arrays_are_refused_by_name():
    with pytest.raises(TypeError, match="ChunkedDotUnit"):
        sn.sum(np.ones(3, np.float32), UNITS["tensor core"])
    cuda = pytest.importorskip("numba.cuda")
    x = cuda.to_device(np.ones((4, 4), np.float32))
    with pytest.raises(TypeError, match="ChunkedDotUnit"):
        sn.matmul(x, x, UNITS["tensor core"])


@cases("op", ["dot", "gemm"])
def test_vectors_and_the_cause_of_a_fault(op):
    right, wrong = (UnitSpec.make(op, sn.ChunkedDotUnit(H100, n)) for n in (4, 2))
    rng = np.random.Generator(np.random.Philox(5))
    codes = [
        rng.integers(0x10, 0x70, (300, column.count)[: 1 + (column.count > 1)]).astype(np.uint8)
        for column in right.operand_columns
    ]
    text = TextLayout(right).format(Block(tuple(codes), None, wrong.evaluate(codes).result, None))
    size = {"shape": right.shape} if op == "gemm" else {"length": right.shape[2]}
    report = check(io.BytesIO(text), op, unit=right.unit, **size)
    assert str(report.causes[0].cause) == "chunk-length" and "2 instead of 4" in str(report), str(report)


DESIGN = """
[roles]
default     = "binary32"
input       = { format = "e4m3fn", overflow = "saturate" }
weights     = { format = "e4m3fn", overflow = "saturate" }
activations = { format = "e4m3fn", overflow = "saturate" }
errors      = { format = "e5m2", overflow = "saturate" }
[units]
"""


def test_designs(tmp_path):
    file = tmp_path / "promoted.toml"
    file.write_text(
        f"{DESIGN}"
        'forward = { preset = "nvidia_h100_e4m3", chunk = 16 }\n'
        'backward_data = { kind = "fused", preset = "nvidia_h100_e4m3", chunk = 16, outer_rounding = "toward_zero" }\n'
        'backward_weight = { kind = "exact", accumulator = "bfloat16", chunk = 8, outer_accumulator = "e6m9" }\n'
    )
    units = load_design(file).layer("fc1").units
    fp8 = [sn.format(name) for name in ("e4m3fn", "e5m2")]
    assert units["forward"] == sn.ChunkedDotUnit(H100, 16)
    assert units["backward_data"].rounding == "toward_zero"
    assert units["backward_data"].operand == (fp8[1], fp8[0])  # of a preset, as the roles pair them
    assert units["backward_weight"] == sn.ChunkedDotUnit(sn.ExactDotUnit("bfloat16", operand=tuple(fp8)), 8, "e6m9")
    settings = Settings(network_options={"sizes": (64, 6, 10)}, epochs=1, batch=338, evaluate_every=4)
    header, *rows = read_lines(run(load_design(file), settings, seed=2, out=tmp_path))
    assert header["config"]["design"]["layers"]["fc1"]["units"]["forward"]["chunk"] == 16
    assert all(np.isfinite(row["loss"]) for row in rows if "loss" in row)


def test_presets_of_other_than_tensor_cores_keep_their_operands(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(DESIGN + 'forward = "ibm_fp8_2018"\n')
    with pytest.raises(ValueError, match="which do not hold every value of role"):
        load_design(file).layer("fc1")


@cases(
    "unit, message",
    [
        ('{ preset = "nvidia_h100_e4m3", outer_rounding = "up" }', "outer_rounding: is of sums in chunks; state chunk"),
        ('{ preset = "nvidia_h100_e4m3", chunk = 0 }', "chunk: must be a positive integer, got 0"),
        ('{ preset = "nvidia_h100_e4m3", chunk = 8, outer_rounding = "sr" }', "is stochastic; take another mode"),
        ('{ preset = "nvidia_h100_e4m3", chunk = 8, outer_accumulator = "e9" }', "outer_accumulator: .*e9"),
        ('{ preset = "nvidia_h100_e4m3", name = "nvidia_h100_e5m2" }', "name: is the preset's name"),
        ('{ kind = "mad", preset = "nvidia_h100_e4m3" }', "kind: preset .* is of kind 'fused', got 'mad'"),
        ('{ preset = "nvidia_h100_e4m4" }', "nvidia_h100_e4m4"),
        ('{ kind = "mad", accumulator = "binary32", outer_rounding = "up" }', "unknown key 'outer_rounding'"),
    ],
)  # fmt: skip
def test_designs_that_do_not_fit(unit, message, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(f"{DESIGN}forward = {unit}\n")
    with pytest.raises(ValueError, match=message):
        load_design(file).layer("fc1")
