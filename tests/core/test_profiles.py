"""The core against the reference: NaN profiles, stated values for invalid results, P3109, every option together."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.formats.modes import NAN_PROFILES, Flags
from tests.support.cases import cases
from tests.support.core_oracles import MODES, STOCHASTIC
from tests.support.operation_judge import (
    BINARY,
    EVERY,
    OPERANDS,
    OWN_FORMAT,
    P3109,
    UNARY,
    WIDE,
    WITH_NAN,
    WITHOUT_NAN,
    columns,
    draw,
    environment,
    judge,
    judge_drawn,
    ours,
    specimens,
    theirs,
)


# -- every kind of operand with every other ----------------------------------------------------------------------------
@cases("fmt", WITH_NAN + WIDE + P3109[:4], ids=str)
@cases("profile", ["canonical", "x86", "arm"])
def test_every_kind_of_operand_with_every_other(fmt, profile):
    codes = specimens(fmt)
    for name, operands in OPERANDS.items():
        rows = list(itertools.product(codes[::2] if operands == 3 and len(codes) > 16 else codes, repeat=operands))
        judge(name, rows, (fmt,) * operands, fmt, {"nan": profile}, random.Random(1))


@cases("target", ["e5m2", "e4m1", "e4m3fn", "e4m3fnuz", "binary16", "binary64", "e8m0fnu", "binary8p3se"])
@cases("profile", ["x86", "arm"])
def test_nans_between_formats(target, profile):
    target, rng = sn.format(target), random.Random(f"{target} {profile}")
    for fmt in WITH_NAN + WIDE + P3109[:4]:
        judge("convert", [(c,) for c in specimens(fmt)], (fmt,), target, {"nan": profile}, rng)
        other = rng.choice(WITH_NAN + WIDE)
        rows = list(itertools.product(specimens(fmt), specimens(other)))
        judge("add", rows, (fmt, other), target, {"nan": profile}, rng)
    for formats in (("binary16", "e5m2", "e4m3fn"), ("e3m4", "binary64", "e5m2"), ("e4m3fnuz", "e3m4", "bfloat16")):
        formats = tuple(map(sn.format, formats))
        rows = list(itertools.product(*(specimens(f)[::2] for f in formats)))
        judge("fma", rows, formats, target, {"nan": profile}, rng)


def test_names_of_one_rule():
    rows = list(itertools.product(specimens(sn.format("e3m4")), repeat=2))
    a, b = columns(rows, WITH_NAN[:1] * 2)
    results = {name: sn.add(a, b, "e3m4", nan=name).tolist() for name in NAN_PROFILES}
    assert results["canonical"] == results["riscv"] == results["arm_default"] == sn.add(a, b, "e3m4").tolist()
    assert len({tuple(x) for x in results.values()}) == 3
    with pytest.raises(ValueError, match="unknown NaN profile 'intel'"):
        sn.add(a, b, "e3m4", nan="intel")


# -- every option with every other -------------------------------------------------------------------------------------
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 20))])
@pytest.mark.parametrize("name", OPERANDS)
def test_every_option_with_every_other(name, part):
    rng = random.Random(f"{name} {part}")
    for _ in range(25):
        judge_drawn(name, rng, 40)


@pytest.mark.parametrize(
    "fmt, code, target",
    [("bfloat16", 0x7F7E, "q1.63"), ("binary64", 0x670A152F9E57C292, "uq3.2"), ("e15m48", 0x63C390C4FAE252FB, "q64.0")],
)
def test_roots_of_too_many_bits_do_not_wrap(fmt, code, target):
    """The core keeps 126 bits of a root; all other operations wrap whatever they get."""
    with pytest.raises(ValueError, match="more than the 124 that can be wrapped exactly"):
        sn.sqrt([code], fmt, out_fmt=target, overflow="wrap")
    judge("sqrt", [(code,)], (sn.format(fmt),), sn.format(target), {"overflow": "saturate"}, random.Random(0))
    largest = [(c,) for c in range(0, 0x7F80, 77)]
    judge("sqrt", largest, (sn.format("bfloat16"),), sn.format("q4.60"), {"overflow": "wrap"}, random.Random(0))


@cases("mode", STOCHASTIC)
@cases("name", [*UNARY, *BINARY[:5], "fma"])
def test_stochastic_modes(name, mode):
    rng = random.Random(f"{name} {mode}")
    for _ in range(5):
        judge_drawn(name, rng, 60, modes=[mode])


@cases("name", OPERANDS)
def test_p3109(name):
    rng = random.Random(name)
    for _ in range(12):
        judge_drawn(name, rng, 60, formats=P3109)


@cases("fmt", [*P3109, sn.format("e4m3fnuz"), sn.format("e3m4"), sn.format("q4.4")], ids=str)
def test_order(fmt):
    rng = random.Random(str(fmt))
    for other in (fmt, rng.choice(EVERY), rng.choice(P3109), rng.choice(WITH_NAN)):
        rows = list(zip(draw(fmt, rng, 300), draw(other, rng, 300), strict=True))
        rows += list(itertools.product(specimens(fmt), specimens(other)))
        a, b = columns(rows, (fmt, other))
        for kind, flush in itertools.product(("quiet", "signaling"), (False, True)):
            got, flags = sn.compare(
                a, b, (fmt, other), signaling=kind == "signaling", return_flags=True, flush_inputs=flush
            )
            want = [ref.compare(*row, (fmt, other), kind, flush_inputs=flush) for row in rows]
            assert list(zip(got.tolist(), flags.tolist(), strict=True)) == [(c, int(f)) for c, f in want], (other, kind)
        if other == fmt:
            assert sn.ops.total_order(a, b, fmt).tolist() == [ref.total_order(*row, fmt) for row in rows]


# -- other ways to the same results: tables for long arrays of 8-bit codes, each instruction set ----------------------
@cases("name", BINARY)
def test_tables_of_8_bits(name, isa):
    rng = random.Random(name)
    for fmt, other, target in [
        (WITH_NAN[0], WITH_NAN[0], WITH_NAN[0]), (WITH_NAN[1], WITH_NAN[3], WITH_NAN[0]),
        (WITH_NAN[1], WITH_NAN[1], WITHOUT_NAN[0]), (P3109[5], P3109[5], P3109[5]), (P3109[4], P3109[4], P3109[7]),
    ]:  # fmt: skip
        a, b = (c.ravel().astype(np.uint8) for c in np.meshgrid(np.arange(256), np.arange(256)))
        deterministic = [mode for mode in MODES if mode not in STOCHASTIC]
        for _ in range(3):
            env = environment(target, rng, deterministic)
            for flags in (False, True):
                at_once = getattr(sn.ops, name)(a, b, (fmt, other), out_fmt=target, return_flags=flags, **env)
                parts = [
                    getattr(sn.ops, name)(x, y, (fmt, other), out_fmt=target, return_flags=flags, **env)
                    for x, y in zip(np.split(a, 32), np.split(b, 32), strict=True)
                ]
                in_parts = np.concatenate(parts, axis=-1)
                assert np.array_equal(at_once, in_parts), (name, fmt, other, target, env)


@cases("name", OPERANDS)
def test_every_instruction_set(name, isa):
    rng = random.Random(name)
    for _ in range(4):
        judge_drawn(name, rng, 40)


# -- invalid results ---------------------------------------------------------------------------------------------------
@cases("fmt", WITHOUT_NAN, ids=str)
@cases("name", [name for name in OPERANDS if name not in ("next_up", "next_down")])
def test_an_invalid_result_is_an_error_unless_a_value_is_stated(name, fmt):
    rng = random.Random(f"{name} {fmt}")
    operands = OPERANDS[name]
    formats = (fmt if name in OWN_FORMAT else sn.format("e5m2"),) * operands
    rows = list(zip(*(draw(f, rng, 60) for f in formats), strict=True))
    shifts, good = np.zeros(len(rows), int), []
    first, second = ref.to_fraction(0, fmt), ref.to_fraction(1, fmt)
    for row in rows:  # what has no code is what follows `invalid`
        codes, one = columns([row], formats), theirs(name, row, formats, fmt, {"invalid": first}, None, 0)
        other = theirs(name, row, formats, fmt, {"invalid": second}, None, 0)
        if one == other:
            good.append(row)
        else:
            assert (one[0], other[0]) == (0, 1) and one[1] & Flags.INVALID
            got, flags = ours(name, codes, formats, fmt, {"invalid": second}, None, shifts[:1])
            assert (int(got[0]), int(flags[0])) == other, row
            with pytest.raises(ValueError, match=f"{fmt} has no code"):
                ours(name, codes, formats, fmt, {}, None, shifts[:1])
    got, _ = ours(name, columns(good, formats), formats, fmt, {}, None, shifts[: len(good)])  # raises nothing
    assert got.tolist() == [theirs(name, row, formats, fmt, {}, None, 0)[0] for row in good]


@cases("name", OPERANDS)
def test_values_that_a_format_lacks_cannot_be_stated(name):
    formats = (sn.format("e2m1fn"),) * OPERANDS[name]
    codes = columns([(1,) * OPERANDS[name]], formats)
    for value in (Fraction(1, 3), 7, float("inf"), float("nan"), "zero"):
        with pytest.raises(ValueError, match="invalid"):
            ours(name, codes, formats, formats[0], {"invalid": value}, None, np.zeros(1, int))


# -- the tests can fail ------------------------------------------------------------------------------------------------
def test_planted_faults_are_caught(monkeypatch):
    fmt = sn.format("e3m4")
    rows = list(itertools.product(specimens(fmt), repeat=2))
    with monkeypatch.context() as patch:
        patch.setattr(ref, "add", lambda *a, nan, **k: ref.subtract(*a, nan="arm", **k))
        with pytest.raises(AssertionError, match="add"):
            judge("add", rows, (fmt, fmt), fmt, {"nan": "x86"}, random.Random(0))
    real = sn.fma
    with monkeypatch.context() as patch:
        patch.setattr(sn.ops, "fma", lambda a, b, c, *rest, **k: real(c, b, a, *rest, **k))
        with pytest.raises(AssertionError, match="fma"):
            test_every_kind_of_operand_with_every_other(fmt, "x86")
