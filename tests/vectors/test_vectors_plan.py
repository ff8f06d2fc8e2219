"""Which vectors are made: the rule, determinism, edge cases, memory."""

import tracemalloc

import numpy as np
import pytest

import softnum as sn
from softnum.formats import FixedFormat, FloatFormat
from softnum.ops import CODE_OPERATIONS as OPERATIONS
from softnum.runtime import _core
from softnum.vectors import TextLayout, VectorSpec, generate, plan, write
from softnum.vectors.plans import _draw
from softnum.vectors.plans.operands import core_codes, edge_codes
from softnum.vectors.plans.plan import _cross
from softnum.vectors.plans.strata import _ORDER, SHARES, random_block, random_words
from tests.support.cases import cases
from tests.support.format_lists import NARROW

FORMATS = [sn.format(n) for n in (*NARROW, "q4.4", "uq0.7", "q1.63", "uq64.0", "e15m40", "binary8p3se")]
KNOWN = [
    "0000 0000 0000 FF 0000 00",
    "8000 0001 FF80 6C FF80 00",
    "0080 7F80 8080 35 7F80 00",
    "8080 7FC0 8001 11 7FC0 00",
    "7F81 8001 8000 FF 7FC0 10",
    "0000 FF80 7FC0 42 7FC0 10",
    "4A0C 222D DB40 1D DB40 01",
    "0347 EF7A 261E C3 B343 01",
    "A361 0553 54C4 85 54C4 01",
    "057D 8B4D B4CC 35 B4CC 01",
    "14DA 7EFC D0C6 68 5455 01",
    "DAF0 319B E132 04 E132 01",
]


def planned(op, fmt, *, count=None, **options):
    return plan(VectorSpec.make(op, fmt, **options), count=count)


@cases(
    "op, fmt, options, method, count",
    [
        ("multiply", "e5m2", {}, "exhaustive", 65536),
        ("multiply", "e5m2", {"count": 65535}, "edges and random", 65535),
        ("multiply", "e5m2", {"count": 10**9}, "exhaustive", 65536),
        ("fma", "e5m2", {}, "edges and random", 2**18),
        ("fma", "e5m2", {"count": 2**24}, "exhaustive", 2**24),
        ("multiply", "binary16", {}, "edges and random", 2**18),
        ("convert", "binary16", {"out_fmt": "e5m2"}, "exhaustive", 65536),
        ("fma", "e2m2", {}, "exhaustive", 2**15),
        ("multiply", "e5m2", {"rounding": "sr"}, "exhaustive operands", 65536),
        ("multiply", "e5m2", {"rounding": "sr", "count": 100_000}, "exhaustive operands", 100_000),
        ("multiply", "e2m1fn", {"rounding": "sr", "stochastic_bits": 8}, "exhaustive", 65536),
    ],
)
def test_the_rule(op, fmt, options, method, count):
    p = planned(op, fmt, **options)
    assert (p.method, p.count) == (method, count)
    if count <= 2**18:
        assert sum(len(b) for b in p.blocks()) == count


@cases("fmt", FORMATS, ids=str)
def test_edges_hold_the_specials_and_each_code_once(fmt):
    for table in (edge_codes(fmt), core_codes(fmt)):
        codes = table.tolist()
        assert len(set(codes)) == len(codes)
        assert max(codes) < 2**fmt.bits
        wanted = {0, 1}
        if fmt.kind == "float":
            wanted |= {fmt.max_code, fmt.max_code - 1}
            wanted |= {fmt.inf_code} if fmt.infinities else set()
            wanted |= {fmt.nan_code} if fmt.has_nan else set()
            if fmt.signed:
                wanted |= {code | 1 << (fmt.bits - 1) for code in (0, 1, fmt.max_code)}
        else:
            wanted |= {2**fmt.bits - 1, 2 ** (fmt.bits - 1), 2 ** (fmt.bits - 1) - 1}
        assert wanted <= set(codes)
    assert len(core_codes(fmt)) <= 56


@cases("op", OPERATIONS)
@cases("fmt", FORMATS, ids=str)
def test_every_operation_of_every_format_makes_vectors(op, fmt):
    options = {"out_fmt": fmt} if op == "convert" else {}
    codes = {f"operand {i}": [] for i in range(OPERATIONS[op][1])}
    for block in generate(op, fmt, count=3000, **options):
        for seen, column in zip(codes.values(), block.operands, strict=True):
            assert column.dtype == fmt.storage_dtype
            seen.append(column)
    for seen in codes.values():
        column = np.concatenate(seen)
        assert int(column.max()) < 2**fmt.bits
        assert len(np.unique(column)) >= min(2**fmt.bits, 500) * 0.85


def test_sums_that_cancel_and_products_at_the_limits_occur():
    fmt = sn.format("binary32")
    cancelled = total = 0
    for block in generate("fma", fmt, count=60000):
        a, b, c = (sn.decode(v, fmt) for v in block.operands)
        with np.errstate(all="ignore"):
            exact = a * b  # exact in binary64
            near = np.isfinite(exact) & (np.abs(exact + c) <= 2.0**-20 * np.abs(c)) & (c != 0)
        cancelled += np.count_nonzero(near)
        total += len(block)
    assert cancelled > 0.03 * total
    tiny = sum(np.count_nonzero(b.flags & sn.Flags.UNDERFLOW) for b in generate("multiply", fmt, count=60000))
    huge = sum(np.count_nonzero(b.flags & sn.Flags.OVERFLOW) for b in generate("multiply", fmt, count=60000))
    assert tiny > 3000 and huge > 3000


@pytest.mark.parametrize("rounding", ["nearest_even", "stochastic"])
def test_same_seed_same_bytes(tmp_path, rounding):
    spec = VectorSpec.make("fma", "binary16", rounding=rounding)
    files = [tmp_path / name for name in ("one", "two", "other")]
    for path, seed in zip(files, (5, 5, 6), strict=True):
        np.random.seed(seed + len(path.name))  # noqa: NPY002  the global state plays no part
        write(plan(spec, count=150_000, seed=seed), path)
    one, two, other = (path.read_bytes() for path in files)
    assert one == two
    assert one != other


def test_known_vectors_never_change():
    """Frozen, so that a file can be made again by a later version."""
    spec = VectorSpec.make("fma", "bfloat16", rounding="sr", stochastic_bits=8)
    text = b"".join(TextLayout(spec).format(b) for b in plan(spec, count=12, seed=123).blocks())
    assert text.decode().splitlines() == KNOWN


def test_random_bits_go_by_the_number_of_the_vector():
    spec = VectorSpec.make("fma", "binary16", rounding="sr", stochastic_bits=20)
    words = random_words(spec, 9, 0, 1 << 18)
    assert np.array_equal(words[70_000:70_010], random_words(spec, 9, 70_000, 10))
    for count in (100, 70_001, 200_000):  # the edges end elsewhere, so do the blocks
        got = np.concatenate([b.random_bits for b in plan(spec, count=count, seed=9).blocks()])
        assert np.array_equal(got, words[:count])
    assert words.max() == 2**20 - 1 and 0.1 < np.mean(words == 0) < 0.15
    assert abs(np.mean(words) / 2**19 - 1) < 0.02


@pytest.mark.parametrize("fmt", ["binary32", "q8.8", ("binary32", "bfloat16")])
@pytest.mark.parametrize("op", ["add", "subtract"])
def test_sums_cancel(op, fmt):
    near = total = 0
    for block in generate(op, fmt, out_fmt="binary32", count=60000):
        formats = fmt if isinstance(fmt, tuple) else (fmt, fmt)
        a, b = (sn.decode(v, f) for v, f in zip(block.operands, formats, strict=True))
        with np.errstate(all="ignore"):
            rest = a + b if op == "add" else a - b
            near += np.count_nonzero(np.isfinite(rest) & (np.abs(rest) <= 2.0**-6 * np.abs(a)) & (a != 0))
        total += len(block)
    assert near > 0.08 * total


@cases("op", ["fma", "divide", "sqrt", "convert", "minimum"])
@cases("fmt", ["binary16", "binary64", "e8m0fnu", "q4.4", "uq0.7"])
def test_operands_are_drawn_alike_on_every_instruction_set(op, fmt):
    spec = VectorSpec.make(op, fmt, out_fmt=fmt)
    before, drawn = _core.current_isa(), []
    for isa in _core.available_isas():
        _core.use_isa(isa)
        drawn.append([column.tobytes() for column in random_block(spec, 3, 2)])
    _core.use_isa(before)
    assert all(columns == drawn[0] for columns in drawn)
    assert drawn[0] != [column.tobytes() for column in random_block(spec, 3, 3)]


def test_a_beginning_of_a_block_has_most_strata():
    """The first 64 vectors, as files of few vectors have no more."""
    kinds = np.repeat(np.arange(len(SHARES)), list(SHARES.values())).reshape(-1, 8)[:, 0]
    assert sorted(_ORDER.tolist()) == list(range(len(kinds)))
    assert len(set(kinds[_ORDER[:8]].tolist())) >= 6
    assert sum(SHARES.values()) == _draw.SLOTS and all(share % 8 == 0 for share in SHARES.values())


def test_combinations_come_each_once():
    tables = [np.arange(n, dtype=np.uint64) for n in (7, 4, 5)]
    first, second, third = _cross(tables, 0, 140)
    assert len(set((first * 20 + second * 5 + third).tolist())) == 140
    again = _cross(tables, 33, 20)
    assert all(np.array_equal(x, y[33:53]) for x, y in zip(again, (first, second, third), strict=True))


def test_passes_refuse_arrays_that_do_not_fit():
    rule, codes = _draw.Rule("uniform", kept=255), np.zeros((4, 8), np.uint64)
    with pytest.raises(ValueError, match="uint64 arrays of rows and columns"):
        rule.apply(codes.astype(np.uint32), codes)
    with pytest.raises(ValueError, match="of one shape"):
        rule.apply(codes[:3], codes)
    with pytest.raises(ValueError, match="side by side"):
        rule.apply(codes[:, ::2], np.zeros((4, 4), np.uint64))
    with pytest.raises(ValueError, match="choices are for rules that choose"):
        rule.apply(codes, codes.copy(), codes)
    with pytest.raises(ValueError, match="groups are numbered"):
        _draw.deal(codes, np.array([1]), np.uint8)
    with pytest.raises(ValueError, match="lies outside"):
        wide = np.zeros((1, 4, _draw.SLOTS), np.uint64)
        _draw.fill_block([(rule, 0, 250, 8)], 0, wide[0], wide)
    with pytest.raises(ValueError, match="is none of a table of 7"):
        _draw.crossed([np.arange(7, dtype=np.uint64)], [7], [1], 3)


def test_a_longer_file_begins_its_random_part_alike():
    a = list(generate("multiply", "binary32", count=400_000, seed=9))
    b = list(generate("multiply", "binary32", count=500_000, seed=9))
    first, second = (np.concatenate([x.operands[1] for x in v]) for v in (a, b))
    edges = planned("multiply", "binary32", count=400_000).edges
    assert edges == planned("multiply", "binary32", count=500_000).edges
    assert np.array_equal(first, second[:400_000])


def test_a_million_vectors_in_constant_memory(tmp_path):
    spec = VectorSpec.make("fma", "binary16")

    def peak(count):
        planned = plan(spec, count=count)
        tracemalloc.start()
        write(planned, tmp_path / "v.txt")
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    small, big = peak(300_000), peak(1_000_000)
    assert big < 1.1 * small + 1e6
    assert big < 40e6
    assert (tmp_path / "v.txt").stat().st_size > 22e6


@cases(
    "arguments, options, message",
    [
        (("mutliply", "e5m2"), {}, "unknown operation 'mutliply'; did you mean 'multiply'"),
        (("multiply", "e5m"), {}, "unknown format 'e5m'"),
        (("multiply", ("e5m2",)), {}, "2 operand"),
        (("multiply", ("e5m2", "e4m3")), {}, "formats differ"),
        (("convert", "e5m2"), {}, "state the target"),
        (("multiply", "e5m2"), {"rounding": "rnee"}, "unknown rounding mode"),
        (("multiply", "e5m2"), {"overflow": "wrap"}, "fixed point"),
        (("multiply", "e5m2"), {"tininess": "never"}, "tininess"),
        (("multiply", "e5m2"), {"count": 0}, "count must lie in 1"),
        (("multiply", "e5m2"), {"seed": -1}, "seed must lie in 0"),
        (("multiply", "e5m2"), {"rounding": "sr", "stochastic_bits": 33}, "stochastic_bits must lie in 1..32, got 33"),
    ],
)
def test_unusable_arguments_are_refused_at_the_call(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        generate(*arguments, **options)


@pytest.mark.parametrize("options", [{"count": 2.0}, {"seed": True}, {"rounding": "sr", "stochastic_bits": "8"}])
def test_numbers_must_be_integers(options):
    with pytest.raises(TypeError, match="must be an integer"):
        generate("multiply", "e5m2", **options)


def test_unnamed_formats_have_a_header_without_spaces():
    spec = VectorSpec.make("multiply", FloatFormat(5, 2, bias=20))
    assert " " not in spec.facts()["format"]
    assert VectorSpec.make("multiply", FixedFormat(4, 4)).facts()["format"] == "q4.4"
