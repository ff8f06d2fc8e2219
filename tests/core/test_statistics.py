"""return_stats=True: counts of roundings, judged by `unit.trace`, which asks the reference alone; the results stay."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import softnum as sn
import softnum.reference
from softnum.formats import FloatFormat
from softnum.formats.names import format as format_of
from softnum.mac.products.sums import adder_of
from softnum.mac.statistics import RoundingCounts, RoundingStats
from softnum.reference.facts import FloatFacts

INEXACT, UNDERFLOW, OVERFLOW, INVALID = (sn.Flags[n] for n in ("INEXACT", "UNDERFLOW", "OVERFLOW", "INVALID"))

#: a step of a trace -> the kind of its rounding
KINDS = {
    "product": "product", "sum": "sum", "y": "compensation", "t - acc": "compensation", "e": "compensation",
    "lanes": "lanes", "chunks": "outer sum", "rounded": "sum", "C added": "C added", "rounding": "sum",
    "scaled sum": "scaled sum", "tensor scales": "tensor scales",
}  # fmt: skip

UNITS = {
    "fused": sn.MadUnit("e4m3", operand="e4m3"),
    "product": sn.MadUnit("e5m2", operand="e4m3", product="e3m4"),
    "saturate": sn.MadUnit("e4m3", operand="e4m3", product="e4m3", overflow="saturate"),
    "saturate finite": sn.MadUnit("e4m3", operand="e4m3", product="e4m3", overflow="saturate_finite"),
    "no infinity": sn.MadUnit("e4m3fn", operand="e4m3fn", product="e4m3fnuz"),
    "toward zero": sn.MadUnit("e4m3", operand="e5m2", product="e5m2", rounding="toward_zero", product_rounding="up"),
    "lanes": sn.MadUnit("e4m3", operand="e4m3", lanes=3, reduction="tree"),
    "chunks": sn.MadUnit("e3m4", operand="e4m3", product="e5m2", chunk=3, outer_accumulator="e5m2", lanes=2),
    "kahan": sn.MadUnit("e4m3", operand="e4m3", compensated="kahan", chunk=4, product="e4m3"),
    "fixed": sn.MadUnit("q4.4", operand="q3.5", product="q3.3"),
    "wrap": sn.MadUnit("q3.3", operand="q3.5", product="q2.3", overflow="wrap"),
    "float and fixed": sn.MadUnit("q4.4", operand="e3m2fn", product="e4m3fn", rounding="to_odd", overflow="saturate"),
    "p3109": sn.MadUnit("binary8p4se", operand="binary8p3se", product="binary8p5sf"),
    "p3109 unsigned": sn.MadUnit("binary8p4ue", operand=("binary8p4ue", "binary8p3se"), rounding="down"),
    "lowest normal": sn.MadUnit("dlfloat16", operand="dlfloat16", product=FloatFormat(3, 2, lowest_binade="zero")),
    "stochastic": sn.MadUnit("e4m3", operand="e4m3", product="e5m2", rounding="stochastic", stochastic_bits=5),
    "stochastic chunks": sn.MadUnit(
        "e4m3", operand="e4m3", rounding="stochastic_floor", stochastic_bits=20, chunk=2, lanes=2
    ),
    "tensor core": sn.FusedDotUnit(3, 4, "e4m3", operand="e4m3", truncate_fraction=4),
    "tensor core, output": sn.FusedDotUnit(
        2, 6, "e5m2", operand="e4m3", output="e3m4", output_rounding="nearest_even", overflow="saturate"
    ),
    "tensor core, C after": sn.FusedDotUnit(4, 5, "e5m4", operand="e4m3", output="e4m3", c="after"),
    "tensor core, infinite": sn.FusedDotUnit(2, 6, "e4m3", operand="e4m3", overflow="always_infinity"),
    "tensor core, p3109": sn.FusedDotUnit(2, 6, "binary8p4se", operand="e4m3", overflow="always_infinity"),
    "chain": sn.FmaChainUnit("e4m3", operand="e5m2", k_order=(2, 0, 1), flush_results="after", flush_inputs=True),
    "chain, saturating": sn.FmaChainUnit("e4m3", operand="e4m3", overflow="saturate", rounding="away_from_zero"),
    "two stages": sn.TwoStageDotUnit(4, 5, 6, 4, "e4m3", operand="e4m3", interleave=2, product_limit=8),
    "exact": sn.ExactDotUnit("e4m3", operand="e5m2", overflow="saturate"),
    "exact, fixed": sn.ExactDotUnit("q4.4", operand="e2m3fn", overflow="wrap"),
    "exact, stochastic": sn.ExactDotUnit("e3m2", operand="e4m3", rounding="stochastic", stochastic_bits=7),
}  # fmt: skip


def edges(fmt, rng, shape):
    """Values of a format: infinities, NaN, both ends, and any others."""
    codes = np.arange(1 << fmt.bits) if fmt.bits <= 8 else rng.integers(0, 1 << fmt.bits, 400)
    values = sn.decode(codes.astype(fmt.storage_dtype), fmt)
    few = np.abs(values[np.isfinite(values)])
    ordinary = values[np.isfinite(values) & (np.abs(values) <= np.quantile(few, 0.8))]
    chosen = rng.choice(ordinary, shape)
    wild = rng.random(shape) < 0.12
    chosen[wild] = rng.choice(values, int(wild.sum()))
    return chosen.astype(np.float32)


def counts_of(steps, kind_of):
    """RoundingCounts by kind of a trace's steps."""
    found = {}
    for step in steps:
        kind = kind_of(step)
        if step.code is None or kind is None:
            continue
        beyond = step.exact in ("inf", "-inf") or step.flags & OVERFLOW
        got = RoundingCounts(
            1, bool(step.flags & INEXACT), bool(step.flags & UNDERFLOW), bool(step.flags & OVERFLOW),
            bool(beyond and step.decision != "wrap" and step.value not in ("inf", "-inf", "nan")),
            bool(step.flags & INVALID),
        )  # fmt: skip
        found[kind] = found.get(kind, RoundingCounts()) + got
    return found


def judged(unit, a, b, c, words, monkeypatch):
    """The statistics by the reference: those of each output's trace. P3109's formats tell their flags here."""
    total = {}
    with monkeypatch.context() as patch:
        patch.setattr(FloatFacts, "silent", False)
        for i, j in product(range(a.shape[0]), range(b.shape[1])):
            start = None if c is None else c[i, j]
            trace = unit.trace(a[i], b[:, j], start, random_bits=None if words is None else words[i, j])
            last = [s for s in trace.steps if s.name == "rounded"][-1:]

            def kind_of(step, last=last):
                output = "output" in unit.roundings and step in last
                return "output" if output else KINDS.get(step.name)

            for kind, counts in counts_of(trace.steps, kind_of).items():
                total[kind] = total.get(kind, RoundingCounts()) + counts
    return total


def converted(unit, c):
    """The rounding of a sum of nothing from c into another output."""
    code, fmt = sn.encode(c, unit.accumulator), unit.result
    result, flags = sn.reference.convert(
        int(code), unit.accumulator, fmt, rounding=unit.output_rounding, overflow=unit.overflow
    )
    saturated = (flags & OVERFLOW or np.isinf(c)) and np.isfinite(sn.decode(np.array(result, fmt.storage_dtype), fmt))
    return RoundingCounts(1, *(bool(flags & f) for f in (INEXACT, UNDERFLOW, OVERFLOW)), bool(saturated))


def same(stats, want):
    """The statistics have the kinds that the unit has, and what the reference counts."""
    return {k: v for k, v in stats.kinds.items() if v != RoundingCounts()} == want and set(want) <= set(stats.kinds)


@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("with_c", [False, True])
def test_counts_are_the_reference_s(name, with_c, monkeypatch):
    """Every unit, with C and without, K = 0 too: as many of each kind as its traces show."""
    unit, rng = UNITS[name], np.random.default_rng(len(name) + with_c)
    seen = RoundingCounts()
    for k in (9, 1, 0):
        a, b = edges(unit.operand[0], rng, (4, k)), edges(unit.operand[1], rng, (k, 3))
        c = edges(unit.c_format, rng, (4, 3)) if with_c else None
        if k:
            a[0, 0], b[0, 0] = float(unit.operand[0].max), float(unit.operand[1].max)
        words = None
        if unit.stochastic:
            steps = unit.steps_with_c(k) if with_c else unit.steps(k)
            words = rng.integers(0, 1 << 32, (4, 3, steps, 2), np.uint32)
        options = {"random_bits": words} if unit.stochastic else {}
        result, stats = sn.matmul(a, b, unit, c, return_stats=True, **options)
        plain = sn.matmul(a, b, unit, c, **options)
        assert result.tobytes() == plain.tobytes() and result.dtype == plain.dtype
        want = judged(unit, a, b, c, words, monkeypatch)
        if k == 0 and "output" in unit.roundings:  # which a trace has no step for
            starts = np.zeros(12) if c is None else c.ravel()
            want = {"output": sum((converted(unit, x) for x in starts), RoundingCounts())}
        assert same(stats, want), (k, stats)
        assert stats.total == sum(stats.kinds.values(), RoundingCounts())
        seen += stats.total
    assert seen.roundings and seen.inexact and seen.overflowed


@pytest.mark.parametrize("rounding", ["nearest_even", "toward_zero", "up", "to_odd", "stochastic_even"])
@pytest.mark.parametrize("overflow", [None, "saturate", "saturate_finite"])
def test_every_rule_and_mode(rounding, overflow, monkeypatch):
    """With infinities among the operands, exact results that are infinite saturate or not as the rule says."""
    rng = np.random.default_rng(5)
    for fmt in ("e4m3", "e4m3fn", "e3m2"):
        unit = sn.MadUnit(fmt, operand=fmt, product=fmt, rounding=rounding, overflow=overflow, stochastic_bits=3)
        a, b = edges(unit.operand[0], rng, (4, 6)), edges(unit.operand[1], rng, (6, 4))
        a[0, :2], b[1, 1] = np.nanmax(a), -np.nanmax(b)
        if unit.operand[0].infinities:
            a[1, 0], b[3, 2] = np.inf, -np.inf
        words = rng.integers(0, 1 << 32, (4, 4, 6, 2), np.uint32) if unit.stochastic else None
        _, stats = sn.matmul(a, b, unit, random_bits=words, return_stats=True)
        assert same(stats, judged(unit, a, b, None, words, monkeypatch))
        assert stats.saturated or overflow != "saturate"


BLOCK_UNITS = [
    sn.BlockDotUnit("e5m7", operand="mxfp8_e4m3"),
    sn.BlockDotUnit("e4m3", operand="mxfp8_e5m2", product="e5m2", overflow="saturate"),
    sn.BlockDotUnit("e4m3", operand="mxfp4", product="e3m4", inner=sn.MadUnit("e4m3", operand="e2m1fn", lanes=2)),
    sn.BlockDotUnit("e5m7", operand="nvfp4", rounding="down"),
    sn.BlockDotUnit("q4.4", operand="nvfp4", inner=sn.FusedDotUnit(4, 2, "e5m2", operand="e2m1fn")),
    sn.BlockDotUnit("binary8p4se", operand="mxfp8_e4m3", inner=sn.ExactDotUnit("binary8p4se", operand="e4m3fn")),
    sn.BlockFusedDotUnit(16, 7, "e5m7", operand="mxfp8_e5m2"),
    sn.BlockFusedDotUnit(32, 5, "e4m3", operand="nvfp4", group=8, output_rounding="nearest_even"),
    sn.BlockFusedDotUnit(32, 9, "binary8p4se", operand="mxfp8_e5m2", overflow="always_infinity"),
]


@pytest.mark.parametrize("unit", BLOCK_UNITS, ids=str)
@pytest.mark.parametrize("with_c", [False, True])
def test_blocks(unit, with_c, monkeypatch):
    """Units of block formats, those of their blocks' sums among them."""
    rng = np.random.default_rng(11)
    a, b = (rng.standard_normal(shape).astype(np.float32) * 3 for shape in ((3, 80), (80, 2)))
    a[0, 5] = 1e6 if unit.accumulator.has_nan else 40
    if unit.accumulator.has_nan:
        a[1, 40], b[41, 1] = np.inf, np.nan
    a, b = sn.array(a, unit.operand[0], axis=-1), sn.array(b, unit.operand[1], axis=-2)
    c = edges(unit.result, rng, (3, 2)) if with_c else None
    result, stats = sn.matmul(a, b, unit, c, return_stats=True)
    assert result.tobytes() == sn.matmul(a, b, unit, c).tobytes()

    def kind_of(step):
        if isinstance(unit, sn.BlockFusedDotUnit):
            return KINDS[step.name] if step.name in ("rounded", "tensor scales") else None
        if "block" not in step.where:
            return "tensor scales"
        if step.formula == "acc + scaled sum" or step.name == "scaled sum":
            return step.name
        return f"inner {KINDS[step.name]}" if step.name in KINDS else None

    want = {}
    with monkeypatch.context() as patch:
        patch.setattr(FloatFacts, "silent", False)
        for i, j in product(range(3), range(2)):
            trace = unit.trace(a[i], b[:, j], None if c is None else c[i, j])
            for kind, counts in counts_of(trace.steps, kind_of).items():
                want[kind] = want.get(kind, RoundingCounts()) + counts
    assert same(stats, want), stats


def test_counts_do_not_depend_on_threads():
    """Nor do the results."""
    rng = np.random.default_rng(2)
    for unit in (
        sn.MadUnit("e5m2", operand="e4m3", product="e4m3", rounding="stochastic", stochastic_bits=9, chunk=8),
        sn.FusedDotUnit(4, 6, "e5m7", operand="e4m3"),
        sn.ExactDotUnit("e5m2", operand="e4m3"),
    ):
        a, b = edges(unit.operand[0], rng, (2, 37, 30)), edges(unit.operand[1], rng, (30, 150))
        key = {"key": (3, 4)} if unit.stochastic else {}
        one, first = sn.matmul(a, b, unit, threads=1, return_stats=True, **key)
        for threads in (2, 5):
            many, again = sn.matmul(a, b, unit, threads=threads, return_stats=True, **key)
            assert again == first and many.tobytes() == one.tobytes()
        parts = [sn.matmul(x, b, unit, return_stats=True, **key)[1] for x in a]
        assert unit.stochastic or parts[0] + parts[1] == first  # a key numbers the matrices
        assert one.tobytes() == sn.matmul(a, b, unit, **key).tobytes()


def test_with_a_key(monkeypatch):
    """The words of the key, for the one output whose trace takes them."""
    rng = np.random.default_rng(8)
    unit = sn.MadUnit("e4m3", operand="e4m3", product="e5m2", rounding="stochastic", stochastic_bits=18, lanes=2)
    a, b = edges(unit.operand[0], rng, (1, 50)), edges(unit.operand[1], rng, (50, 1))
    a[~np.isfinite(a)] = b[~np.isfinite(b)] = 1
    result, stats = sn.dot(a[0], b[:, 0], unit, key=(7, 1), return_stats=True)
    trace = unit.trace(a[0], b[:, 0], key=(7, 1))
    assert result == trace.result and same(stats, counts_of(trace.steps, lambda step: KINDS.get(step.name)))


def test_sums_and_convolutions():
    """They count what the matrix product does that they are."""
    rng = np.random.default_rng(3)
    unit = sn.MadUnit("e4m3", operand="e4m3", product="e5m2", chunk=5)
    x = edges(unit.accumulator, rng, (4, 23))
    result, stats = sn.sum(x, unit, axis=1, return_stats=True)
    again, same_stats = sn.matmul(
        np.ones((1, 23), np.float32), x.T, adder_of(unit, unit.accumulator), return_stats=True
    )
    assert result.tobytes() == again.tobytes() == sn.sum(x, unit, axis=1).tobytes() and stats == same_stats
    assert "product" not in stats.kinds

    image, weights = edges(unit.operand[0], rng, (2, 3, 6, 5)), edges(unit.operand[1], rng, (4, 3, 2, 2))
    result, stats = sn.conv2d(image, weights, unit, padding=1, return_stats=True)
    assert result.tobytes() == sn.conv2d(image, weights, unit, padding=1).tobytes()
    wide = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
    rows = [wide[i, :, y : y + 2, x : x + 2].ravel() for i in range(2) for y in range(7) for x in range(6)]
    product_, same_stats = sn.matmul(np.array(rows), weights.reshape(4, -1).T, unit, return_stats=True)
    assert stats == same_stats and result.transpose(0, 2, 3, 1).ravel().tobytes() == product_.ravel().tobytes()

    gradient = edges(unit.operand[0], rng, result.shape)
    for plain, counted in (
        (
            sn.mac.products.conv2d_backward_data(gradient, weights, unit, (6, 5), padding=1, threads=1),
            sn.mac.products.conv2d_backward_data(gradient, weights, unit, (6, 5), padding=1, return_stats=True),
        ),
        (
            sn.mac.products.conv2d_backward_weight(image, gradient, unit, (2, 2), padding=1),
            sn.mac.products.conv2d_backward_weight(
                image, gradient, unit, (2, 2), padding=1, return_stats=True, workspace=10_000
            ),
        ),
    ):
        assert counted[0].tobytes() == plain.tobytes()
        k = counted[1]["product"].roundings
        assert k == plain.size * (16 if plain.shape == image.shape else 84)


def test_statistics_of_nothing():
    unit = sn.MadUnit("e4m3", operand="e4m3")
    for shape in ((0, 3, 2), (2, 0, 2), (2, 3, 0)):
        m, k, n = shape
        stats = sn.matmul(np.ones((m, k), np.float32), np.ones((k, n), np.float32), unit, return_stats=True)[1]
        assert stats == RoundingStats({"sum": RoundingCounts()})
    ones, out = np.ones((1, 2), np.float32), np.empty((1, 1), np.float32)
    result, stats = sn.matmul(ones, ones.T, unit, out=out, return_stats=True)
    assert result is out and stats["sum"] == RoundingCounts(2)


def test_the_counts_as_data():
    one, two = RoundingCounts(3, 2, 0, 1, 1, 0), RoundingCounts(1, 1, 1, 0, 0, 1)
    stats = RoundingStats({"product": one}) + RoundingStats({"product": two, "sum": two})
    assert stats.kinds == {"product": RoundingCounts(4, 3, 1, 1, 1, 1), "sum": two}
    assert stats.roundings == 5 and stats.total.inexact == stats.inexact == 4
    assert stats.to_dict()["total"] == {
        "roundings": 5, "inexact": 4, "underflowed": 2, "overflowed": 1, "saturated": 1, "invalid": 2,
    }  # fmt: skip
    assert repr(RoundingStats({"sum": one})) == "RoundingStats(sum: 3 roundings, 2 inexact, 1 overflowed, 1 saturated)"
    assert str(stats).splitlines()[-1].split() == ["total", "5", "4", "2", "1", "1", "2"]
    assert stats != replace(stats, kinds={}) and sum([stats, stats], RoundingStats()) == stats + stats
    with pytest.raises(KeyError, match="no roundings of kind 'lanes'; there are product, sum"):
        stats["lanes"]
    with pytest.raises(AttributeError, match="the counts are roundings, inexact"):
        _ = stats.overflow
    with pytest.raises(TypeError):
        _ = stats + 1


def test_cuda_arrays_are_not_counted():
    class OnDevice:
        __cuda_array_interface__ = {}

    with pytest.raises(TypeError, match="return_stats=True counts on the host; copy the CUDA arrays there first"):
        sn.matmul(OnDevice(), OnDevice(), sn.MadUnit("e4m3", operand="e4m3"), return_stats=True)


def test_a_result_without_a_code_is_still_an_error():
    unit = sn.MadUnit("e2m1fn", operand="e4m3")
    with pytest.raises(ValueError, match="no code"):
        sn.matmul(np.full((1, 1), np.nan, np.float32), np.ones((1, 1), np.float32), unit, return_stats=True)
    assert format_of("e2m1fn").has_nan is False
