"""MadUnit: lanes, reductions, chunks, compensation, any accumulator, against the reference's plain loop."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.formats.facts import fits
from softnum.mac import _gemm
from softnum.mac.mad import MAX_LANES
from softnum.mac.products.engines import fast_of
from softnum.reference.mac import reduction_order
from tests.support.cases import cases
from tests.support.core_oracles import show
from tests.support.mad_units import NEW
from tests.support.matmul_units import (
    ALL,
    as_codes,
    definition,
    extreme,
    key_of,
    middling,
    reference,
    sr,
    unit,
    values_of,
)
from tests.support.public import PUBLIC


def operands(u, rng, shapes, kind):
    """Operands (a, b) of one kind of difficulty, of shapes (m, k) and (k, n)."""
    finite = kind != "special" or not all(f is None or f.has_nan for f in (u.product, u.accumulator, u.outer))
    if kind == "random":
        return tuple(middling(f, rng, s) for f, s in zip(u.operand, shapes, strict=True))
    if kind in ("special", "extreme"):
        return tuple(extreme(f, rng, s, finite) for f, s in zip(u.operand, shapes, strict=True))
    if kind == "tiny":  # subnormals of the operands, and products below the sums' smallest
        small = []
        for f, s in zip(u.operand, shapes, strict=True):
            values = values_of(f, finite=True)
            small.append(
                rng.choice(np.sort(values[values != 0], kind="stable")[np.argsort(abs(values[values != 0]))][:9], s)
            )
        return tuple(small)
    a, b = (middling(f, rng, s) for f, s in zip(u.operand, shapes, strict=True))
    k = a.shape[1]
    if u.operand[0].signed:  # the second half of the sum takes back the first, in another order
        a[:, k - k // 2 :] = -a[:, : k // 2]
        if not all(f.kind == "table" or f.negative_zero for f in u.operand[:1] if f.kind == "float"):
            a += 0.0
        b[k - k // 2 :] = b[: k // 2]
        if u.operand[0].kind != "float":
            a = sn.quantize(a, u.operand[0]).astype(a.dtype)
    return a, b


def compare(u, a, b, c=None, **how):
    key = (77, 5) if u.stochastic else None
    try:
        want = reference(a, b, u, c, key=key)
        got = as_codes(sn.matmul(a, b, u, c, key=key, **how), u.outer)
    except ValueError as error:
        assert "no code" in str(error) or "NaN or infinite" in str(error), error
        assert not all(f is None or f.has_nan for f in (u.product, u.accumulator, u.outer))
        return
    if not np.array_equal(got, want):
        m, n = (int(i) for i in np.argwhere(got != want)[0])
        raise AssertionError(
            f"{u!r}: [{m}, {n}] got {show(got[m, n], u.outer)}, want {show(want[m, n], u.outer)}; a = {a[m].tolist()}, "
            f"b = {b[:, n].tolist()}, c = {None if c is None else np.broadcast_to(c, got.shape)[m, n]}"
        )


@cases("kind", ["random", "cancelling", "extreme", "tiny", "special"])
@cases("u", NEW, ids=repr)
def test_every_unit_equals_the_plain_loop(u, kind):
    rng = np.random.default_rng(11)
    a, b = operands(u, rng, ((2, 13), (13, 3)), kind)
    compare(u, a, b)
    if fits(u.outer, np.float64):
        c = rng.normal(0, 4, 3) if u.outer.signed else rng.random(3)
        compare(u, a, b, sn.quantize(c, u.outer, overflow="saturate"))


@cases("u", NEW[::5], ids=repr)
def test_sizes_threads_and_instruction_sets(u, isa):
    """Blocks of outputs are 8 by 16: sizes below, at and above; a few outputs are judged by the reference."""
    rng = np.random.default_rng(12)
    for m, n, k in ((1, 1, 1), (7, 15, 5), (8, 16, 4), (9, 17, 6), (17, 33, 3), (2, 130, 9), (3, 2, 0)):
        a, b = operands(u, rng, ((m, k), (k, n)), "random")
        whole = sn.matmul(a, b, u, threads=1, **key_of(u))
        for threads in (2, 3, 7):
            again = sn.matmul(a, b, u, threads=threads, **key_of(u))
            assert np.array_equal(as_codes(again, u.outer), as_codes(whole, u.outer)), (u, m, n, k, threads)
        for i, j in {(0, 0), (m - 1, n - 1), (m // 2, n // 2)}:
            key = (77, 5) if u.stochastic else None
            codes = [
                sn.encode(np.asarray(x, np.float64), _coded(f))
                for x, f in ((a[i], u.operand[0]), (b[:, j], u.operand[1]))
            ]
            want = _dot(u, *codes, key=key, m=i, n=j)
            assert as_codes(whole, u.outer)[i, j] == want, (u, m, n, k, i, j)


def _coded(f):
    return "binary64" if f.kind == "table" else f


def _dot(u, a, b, **options):
    return ref.mad_dot(
        a.tolist(), b.tolist(), operand=tuple(map(_coded, u.operand)), accumulator=u.accumulator, product=u.product,
        rounding=u.rounding, product_rounding=u.product_rounding, overflow=u.overflow, chunk=u.chunk, lanes=u.lanes,
        reduction=u.reduction, compensated=u.compensated, stochastic_bits=u.stochastic_bits,
        outer_accumulator=u.outer_accumulator, **options,
    )[0]  # fmt: skip


@pytest.mark.parametrize("lanes", [63, 255, MAX_LANES])
def test_many_lanes(lanes):
    """Of many lanes a block holds few outputs: all of them are computed, and none reads another's lanes."""
    rng = np.random.default_rng(13)
    for shape in ({}, {"chunk": lanes + 7}, {"compensated": "kahan"}):
        u = unit("e6m9", "e5m2", lanes=lanes, reduction="pairwise", **shape)
        a, b = middling(u.operand[0], rng, (3, 40)), middling(u.operand[1], rng, (40, 19))
        whole = sn.matmul(a, b, u)
        for i, j in ((0, 0), (1, 7), (2, 18)):
            assert whole[i, j] == sn.matmul(a[i : i + 1], b[:, j : j + 1], u)[0, 0]
        codes = sn.encode(a[2], "e5m2"), sn.encode(b[:, 18], "e5m2")
        assert sn.encode(whole[2, 18], "e6m9") == _dot(u, *codes)


def by_hand(x, lanes, how):
    """Numbers in order into lanes and the lanes into one, in floats of so few digits that nothing rounds."""
    sums = [sum(x[i::lanes]) for i in range(lanes)]
    text = [f"l{i}" for i in range(lanes)]
    for i, j in reduction_order(lanes, how):
        text[i] = f"({text[i]}+{text[j]})"
    return sums, text[0]


def test_the_orders_of_reduction():
    texts = {how: [by_hand([1] * 8, n, how)[1] for n in (2, 3, 5, 6, 8)] for how in ("sequential", "tree", "pairwise")}
    assert texts["sequential"][2] == "((((l0+l1)+l2)+l3)+l4)"
    assert texts["tree"] == [
        "(l0+l1)", "((l0+l1)+l2)", "(((l0+l1)+(l2+l3))+l4)", "(((l0+l1)+(l2+l3))+(l4+l5))",
        "(((l0+l1)+(l2+l3))+((l4+l5)+(l6+l7)))",
    ]  # fmt: skip
    assert texts["pairwise"] == [
        "(l0+l1)", "((l0+l1)+l2)", "(((l0+l1)+l2)+(l3+l4))", "(((l0+l1)+l2)+((l3+l4)+l5))",
        "(((l0+l1)+(l2+l3))+((l4+l5)+(l6+l7)))",
    ]  # fmt: skip
    # 16 and ones in e6m3, where 16 + 1 is 16 and 16 + 2 is 18
    ones = np.ones(5, np.float32)
    x = np.float32([16, 1, 1, 1, 1])
    dot = lambda how, c=None: sn.dot(x, ones, unit("e6m3", "e5m2", lanes=5, reduction=how), c)  # noqa: E731
    assert dot("sequential") == 16  # (((16 + 1) + 1) + 1) + 1
    assert dot("tree") == 20  # ((16 + 1) + (1 + 1)) + 1: 18 + 1 is a tie, 18's last bit is odd
    assert dot("pairwise") == 18  # ((16 + 1) + 1) + (1 + 1)
    assert dot("sequential", 1) == 16
    assert dot("tree", 1) == 20  # ((1 + 16) + (1 + 1)) + (1 + 1)
    assert dot("pairwise", 1) == 20  # ((1 + 16) + 1) + ((1 + 1) + 1)


@pytest.mark.parametrize("lanes", [2, 4, 8, 16, 64])
def test_pairwise_is_the_tree_of_a_power_of_two(lanes):
    rng = np.random.default_rng(14)
    for options in ({}, {"chunk": 40}):
        tree, halves = (unit("e6m3", "e5m2", lanes=lanes, reduction=how, **options) for how in ("tree", "pairwise"))
        a, b = middling(tree.operand[0], rng, (9, 100)), middling(tree.operand[1], rng, (100, 20))
        assert np.array_equal(sn.matmul(a, b, tree), sn.matmul(a, b, halves))


def test_one_lane_has_no_reduction():
    rng = np.random.default_rng(15)
    for u in (unit("e6m9", "e5m2"), unit("e6m9", "e5m2", chunk=4), sr("e6m9", "e5m2", 12)):
        a, b = middling(u.operand[0], rng, (3, 10)), middling(u.operand[1], rng, (10, 4))
        for how in ("tree", "pairwise"):
            other = replace(u, reduction=how)
            assert np.array_equal(sn.matmul(a, b, u, **key_of(u)), sn.matmul(a, b, other, **key_of(u)))


def test_lanes_take_turns_within_a_chunk():
    """Chunks of 5 in 2 lanes: k = 5 begins chunk 1 in lane 0. Lane 0 is made to stick, lane 1 is not."""
    u = unit("e6m3", "e5m2", lanes=2, chunk=5)
    x = np.float32([16, 1, 1, 1, 1, 16, 1, 1, 1, 1])  # lane 0 of each chunk: 16 + 1 + 1 = 16; lane 1: 1 + 1
    assert sn.dot(x, np.ones(10, np.float32), u) == 36
    assert sn.dot(x, np.ones(10, np.float32), unit("e6m3", "e5m2", lanes=2)) == 36  # lane 0: 16, 1, 1, 1, 1; lane 1: 20
    assert sn.dot(x[:1], x[:1] * 0 + 1, u) == 16  # a lane without a product is +0
    assert sn.dot([-(2.0**-16)], [2.0**-16], unit("e5m2", "e5m2", lanes=2)) == 0
    zero = sn.dot([-(2.0**-16)], [2.0**-16], unit("e5m2", "e5m2", lanes=2))
    assert not np.signbit(zero)  # -0 + +0: the empty lane is added
    assert np.signbit(sn.dot([-(2.0**-16)], [2.0**-16], unit("e5m2", "e5m2")))


def test_where_c_enters():
    a, b = np.float32([1, 1, 1, 1]), np.ones(4, np.float32)
    lanes = unit("e6m3", "e5m2", lanes=2)
    assert sn.dot(a, b, lanes, 16) == 20  # (16 + 2) + 2: C meets the lanes' sums
    assert sn.dot(a, b, unit("e6m3", "e5m2"), 16) == 16  # C is the sum's start: 16 + 1 four times
    assert sn.dot(a, b, unit("e6m3", "e5m2", chunk=2), 16) == 20
    assert sn.dot(a, b, unit("e6m3", "e5m2", chunk=2, lanes=2), 16) == 20
    for u in (lanes, unit("e6m3", "e5m2", lanes=3, chunk=2), unit("e6m3", "e5m2", compensated="kahan")):
        assert np.signbit(sn.dot([], [], u, -0.0)) and not np.signbit(sn.dot([], [], u))
        assert sn.dot([], [], u, 3) == 3


def test_steps_are_counted_and_numbered_in_their_order():
    assert [unit("e6m9", "e5m2").steps(k) for k in (0, 1, 9)] == [0, 1, 9]
    assert [unit("e6m9", "e5m2", chunk=4).steps(k) for k in (0, 1, 9)] == [0, 2, 12]
    assert [unit("e6m9", "e5m2", lanes=4).steps(k) for k in (0, 1, 9)] == [0, 4, 12]
    assert [unit("e6m9", "e5m2", lanes=4).steps_with_c(k) for k in (0, 1, 9)] == [0, 5, 13]
    assert [unit("e6m9", "e5m2", lanes=4, chunk=4).steps(k) for k in (0, 1, 9)] == [0, 5, 21]
    assert unit("e6m9", "e5m2", lanes=4, chunk=4).steps_with_c(9) == 21


def test_random_words_by_an_explicit_loop():
    """Lanes in chunks: from step K on, chunk 0's additions of lanes, its addition to the outer sum, chunk 1's ..."""
    u = sr("e6m9", "e5m2", 20, product="e5m2", lanes=3, chunk=5, reduction="tree")
    rng = np.random.default_rng(16)
    a, b = (middling(f, rng, 11) for f in u.operand)
    c = np.float32(1.5)
    words = [ref.random_words_matmul(77, 5, 0, 0, 0, step, 20, True) for step in range(u.steps(11))]
    how = {"rounding": "stochastic", "stochastic_bits": 20}
    add = lambda x, y, word: ref.add(x, y, "e6m9", random_bits=word, **how)[0]  # noqa: E731
    codes = [sn.encode(x, "e5m2").tolist() for x in (a, b)]
    outer, step = int(sn.encode(c, "e6m9")), 11
    for first in (0, 5, 10):
        lanes = [0, 0, 0]
        for k in range(first, min(first + 5, 11)):
            p = ref.multiply(codes[0][k], codes[1][k], "e5m2", random_bits=words[k][0], **how)[0]
            lane = (k - first) % 3
            lanes[lane] = ref.add(
                lanes[lane], p, ("e6m9", "e5m2"), out_fmt="e6m9", random_bits=words[k][1], **how
            )[0]  # fmt: skip
        pair = add(lanes[0], lanes[1], words[step][1])
        total = add(pair, lanes[2], words[step + 1][1])
        outer = add(outer, total, words[step + 2][1])
        step += 3
    assert step == u.steps(11)
    assert sn.encode(sn.dot(a, b, u, c, key=(77, 5)), "e6m9") == outer
    by_words = sn.dot(a, b, u, c, random_bits=np.array(words, np.uint32).reshape(1, 1, -1, 2))
    assert sn.encode(by_words, "e6m9") == outer


def test_random_words_where_c_meets_the_lanes():
    u = sr("e6m9", "e5m2", 12, lanes=3)
    rng = np.random.default_rng(17)
    a, b = middling(u.operand[0], rng, (2, 7)), middling(u.operand[1], rng, (7, 2))
    for c, steps in ((None, 9), (np.float32(2), 10)):
        words = rng.integers(0, 1 << 32, (2, 2, steps, 2), dtype=np.uint32)
        want = reference(a, b, u, c, random_bits=words)
        assert np.array_equal(as_codes(sn.matmul(a, b, u, c, random_bits=words), u.outer), want)
        with pytest.raises(ValueError, match=rf"random_bits must be uint32 of shape \(2, 2, {steps}, 2\)"):
            sn.matmul(a, b, u, c, random_bits=words[:, :, :-1])


def test_kahan_by_hand():
    """e6m3 counts to 16 by ones; the compensation keeps what is lost until it makes a whole quantum."""
    ones = np.ones(40, np.float32)
    assert sn.dot(ones, ones, unit("e6m3", "e5m2")) == 16
    assert sn.dot(ones, ones, unit("e6m3", "e5m2", compensated="kahan")) == 40
    assert sn.dot(ones, ones, unit("e6m3", "e5m2", compensated="kahan", chunk=1)) == 40  # that of the chunks as well
    # acc = 16, e = 0: y = 1, t = R(17) = 16, e = (16 - 16) - 1 = -1; then y = R(1 - -1) = 2, t = 18, e = 0
    assert [sn.dot(ones[:n], ones[:n], unit("e6m3", "e5m2", compensated="kahan")) for n in (16, 17, 18)] == [16, 16, 18]
    # the product is not rounded by itself: y = R(a * b - e)
    x = np.float32([16, 1.25])
    assert sn.dot(x, x, unit("binary32", "e5m2", compensated="kahan")) == 257.5625
    inf = sn.dot(np.float32([57344, 57344, 1]), np.float32([1, 1, 1]), unit("e5m2", "e5m2", compensated="kahan"))
    assert np.isnan(inf)  # e = (inf - 57344) - 57344 = inf, and then inf - inf


def test_int8_into_int32():
    """Against NumPy: wrapping is int64 modulo 2**32; saturating is a clip after every step."""
    rng = np.random.default_rng(18)
    a, b = rng.integers(-128, 128, (5, 300)).astype(np.float32), rng.integers(-128, 128, (300, 7)).astype(np.float32)
    a[0], b[:, 0] = -128, -128
    exact = a.astype(np.int64) @ b.astype(np.int64)
    for c in (0, 2**31 - 1, -(2**31), 2**31 - 5_000_000):
        start = np.full((5, 7), float(c))
        wrapped = (exact + c + 2**31) % 2**32 - 2**31
        saturated = np.full((5, 7), c, np.int64)
        for k in range(300):
            products = np.outer(a[:, k].astype(np.int64), b[k].astype(np.int64))
            saturated = np.clip(saturated + products, -(2**31), 2**31 - 1)
        for lanes in (1, 4):
            wrap = sn.matmul(a, b, unit("q32.0", "q8.0", overflow="wrap", lanes=lanes), start)
            assert np.array_equal(wrap, wrapped)
        assert np.array_equal(sn.matmul(a, b, unit("q32.0", "q8.0"), start), saturated)
        if c in (0, 2**31 - 1):
            assert (wrapped != saturated).any() == (c != 0)
    small = sn.matmul(a, b, unit("q32.0", "q8.0", product="q8.0"))  # an 8-bit product register saturates each product
    clipped = np.clip(a.astype(np.int64)[:, :, None] * b.astype(np.int64)[None], -128, 127).sum(1)
    assert np.array_equal(small, clipped)


def test_fp8_times_int4_into_q24_8():
    u = unit("q24.8", ("e4m3fn", "q4.0"))
    assert sn.dot(np.float32([0.0625, 448, -0.001953125]), np.float32([7, -8, 1]), u) == 0.4375 - 3584
    # 2**-9 is half of q24.8's last place: it rounds to even, to 0, and two of them never add up
    tiny = np.float32([2.0**-9, 2.0**-9, 3 * 2.0**-9])
    assert sn.dot(tiny, np.ones(3, np.float32), u) == 2 * 2.0**-8
    assert sn.dot(tiny, np.ones(3, np.float32), unit("q24.8", ("e4m3fn", "q4.0"), rounding="down")) == 2.0**-8


def test_the_overflow_rule_goes_where_it_is_known():
    """wrap is for fixed point: a float product overflows to infinity, and an infinity has no code in fixed point."""
    u = unit("q8.8", "e5m2", product="e5m2", overflow="wrap")
    assert sn.dot(np.float32([128, 1]), np.float32([1, 1]), u) == -127
    with pytest.raises(ValueError, match="no code"):
        sn.dot(np.float32([57344]), np.float32([57344]), u)
    saturating = unit("q8.8", "e5m2", product="e5m2", overflow="saturate", lanes=2)
    assert sn.dot(np.float32([57344]), np.float32([57344]), saturating) == 128 - 2.0**-8


def test_of_new_units_those_on_hardware_floats_alone_are_computed_in_the_cpus_operations():
    for u in NEW:
        if u.lanes > 1 or u.compensated:
            hardware = u.accumulator == u.outer == sn.format("binary32") and not u.compensated
            assert (getattr(fast_of(u), "path", None) == "ieee") == hardware, u


@cases("u", [*NEW, *ALL], ids=lambda u: u.expression)
def test_repr_and_pickle_round_trip(u):
    assert eval(repr(u), PUBLIC) == u
    assert pickle.loads(pickle.dumps(u)) == u


def test_words_and_formulas():
    assert unit("e6m9", "e5m2", lanes=4, reduction="tree", chunk=64).expression == (
        "MadUnit('e6m9', operand='e5m2', lanes=4, chunk=64, reduction='tree')"
    )
    assert unit("q24.8", ("e4m3fn", "q4.0")).expression == "MadUnit('q24.8', operand=('e4m3fn', 'q4.0'))"
    for u in (*NEW, sn.unit("nvidia_h100_e4m3"), sn.unit("x86_avx512_bf16"), sn.unit("nvfp4")):
        assert repr(u) == f"{u.expression}  # {u}" and "\n" not in repr(u) and eval(u.expression, PUBLIC) == u
    assert str(unit("e6m9", "e5m2", lanes=4, reduction="tree", chunk=64)) == (
        "acc = round(acc + a * b): e5m2 x e5m2 -> e6m9, one rounding (nearest_even), "
        "in 4 lanes reduced as a tree: (l0 + l1) + (l2 + l3), in chunks of 64 summed in e6m9"
    )
    assert str(unit("e6m9", "e5m2", lanes=100)) == (
        "acc = round(acc + a * b): e5m2 x e5m2 -> e6m9, one rounding (nearest_even), in 100 lanes reduced in order"
    )
    assert str(unit("e6m9", "e5m2", product="e5m2", compensated="kahan", lanes=3, reduction="pairwise")) == (
        "y = round(round(a * b) - e), t = round(acc + y), e = round(round(t - acc) - y), acc = t: e5m2 x e5m2 -> e5m2 "
        "(nearest_even) -> e6m9 (nearest_even), compensated (Kahan), in 3 lanes reduced by halves: (l0 + l1) + l2"
    )


@pytest.mark.parametrize(
    "message, options",
    [
        ("lanes must be an integer from 1 to 1024, got 0", {"lanes": 0}),
        ("lanes must be an integer from 1 to 1024, got 1025", {"lanes": 1025}),
        ("lanes must be an integer from 1 to 1024, got 2.0", {"lanes": 2.0}),
        ("lanes must be an integer from 1 to 1024, got True", {"lanes": True}),
        ("reduction must be one of sequential, tree, pairwise, got 'halves'", {"reduction": "halves"}),
        ("compensated must be None or 'kahan', got 'neumaier'", {"compensated": "neumaier"}),
        ("a step has no random words for them; take a rounding other than 'stochastic'",
         {"compensated": "kahan", "rounding": "stochastic"}),
    ],
)  # fmt: skip
def test_refusals(message, options):
    with pytest.raises(ValueError, match=message):
        sn.MadUnit("e6m9", operand="e5m2", **options)


def test_the_core_holds_the_same_names_and_limit():
    assert _gemm.MAX_LANES == MAX_LANES
    assert list(_gemm.REDUCTION) == ["sequential", "tree", "pairwise"]
    with pytest.raises(ValueError, match="lanes must lie in 1..1024, got 1025"):
        u = unit("e6m9", "e5m2")
        object.__setattr__(u, "lanes", MAX_LANES + 1)
        _gemm.DefinitionGemm(u, u.operand)


def test_the_definition_computes_every_old_unit_too():
    """Blocks of rows and columns: sizes around them, against one output at a time."""
    rng = np.random.default_rng(19)
    for u in ALL[::7]:
        a, b = middling(u.operand[0], rng, (9, 6)), middling(u.operand[1], rng, (6, 35))
        whole = as_codes(definition(a, b, u, **key_of(u)), u.outer)
        assert np.array_equal(whole, reference(a, b, u, **key_of(u)))
