"""What the reference holds for the facts of a format, a mode and a flag, against what softnum holds for them."""

import ast
import itertools
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import softnum as sn
from softnum import formats
from softnum import reference as ref
from softnum.formats import modes, names
from softnum.formats.blocks import SCALE_RULES
from softnum.mac import order
from softnum.reference import blocks, facts, rounding, rules
from softnum.reference import mac as units
from softnum.reference.facts import BLOCKS, NAMED, block_format_of, format_of
from softnum.reference.values import stored_code
from tests.support.cases import cases

FOLDER = Path(ref.__file__).parent


def parsed(parse, name):
    """What a name stands for, or that it stands for nothing."""
    try:
        return parse(name)
    except ValueError:
        return None


def check(fmt, own=None):
    """Every fact of a format: those that define it, those that follow, and the values that codes have."""
    own = format_of(fmt) if own is None else own
    for parameter in facts.PARAMETERS[fmt.kind]:
        if parameter != "name":
            assert getattr(own, parameter) == getattr(fmt, parameter), f"{fmt!r}: {parameter}"
    shared = ["kind", "bits", "signed", "has_nan", "infinities", "negative_zero", "has_zero", "saturating", "p3109"]
    if fmt.kind == "float":
        shared.append("emin")
        for fact in ("inf_code", "max_code", "nan_code"):
            got, want = getattr(own, fact), getattr(fmt, fact)
            got = got if got is None else stored_code(got, own)
            assert got == want, f"{fmt!r}: {fact} is {got!r}, and {want!r} there"
    for fact in shared:
        got, want = getattr(own, fact), getattr(fmt, fact)
        assert got == want and type(got) is type(want), f"{fmt!r}: {fact} is {got!r}, and {want!r} there"
    assert str(own) == str(fmt)
    stored = stored_code if fmt.kind == "float" else lambda code, own: code
    value = lambda code: ref.decode(stored(code, own), own).fraction  # noqa: E731
    assert value(own.max_code) == Fraction(fmt.max), f"{fmt!r}: max"
    assert value(own.least_code) == Fraction(fmt.smallest_subnormal), f"{fmt!r}: smallest_subnormal"
    if fmt.kind == "float":
        assert own.smallest_normal == Fraction(fmt.smallest_normal), f"{fmt!r}: smallest_normal"
    if fmt.kind == "fixed":
        assert Fraction(own.lowest, 1 << own.fraction_bits) == Fraction(fmt.min), f"{fmt!r}: min"
    elif fmt.signed:
        assert value(own.max_code | 1 << (own.bits - 1)) == Fraction(fmt.min), f"{fmt!r}: min"


def test_named_formats():
    assert list(NAMED) == sn.format_names()
    for name in NAMED:
        check(names.format(name), NAMED[name])
        check(names.format(name))
        assert format_of(name) is NAMED[name] == format_of(names.format(name))
        assert format_of(f" {name.upper()} ") is NAMED[name]


def family(spelt):
    """Every name of a family: of both or of neither, and then with the same facts."""
    known = 0
    for name in spelt:
        fmt, own = parsed(names.format, name), parsed(format_of, name)
        assert (fmt is None) == (own is None), f"{name}: {fmt!r} and {own!r}"
        if fmt is not None:
            check(fmt, own)
            assert format_of(fmt) == own
            known += 1
    return known


def test_names_of_floats():
    widths = [*range(66), *range(94, 130)]
    assert family(f"e{e}m{m}" for e in range(18) for m in widths if (e, m) != (8, 0)) > 1200  # e8m0: OCP's


def test_names_of_fixed_point():
    assert family(f"{u}q{i}.{f}" for u in ("", "u") for i in range(67) for f in range(67)) == 8954
    assert family(f"{u}q{i}.{f}" for u in ("", "u") for i in (0, 1, 64, 127, 128) for f in (1, 63, 127, 128, 129)) == 19


def test_names_of_p3109():
    """All of P3109, K to 64, and names just beyond its domain."""
    widths = [(k, p) for k in range(1, 67) for p in range(k + 2)]
    assert family(f"binary{k}p{p}{s}{d}" for k, p in widths for s in "su" for d in "ef") > 2500


def test_every_combination_of_facts():
    """Formats of every combination of the parameters that exists, of few bits."""
    made = 0
    for e, m, bias, signed, nan_codes, infinities, negative_zero, has_zero, lowest, saturating in itertools.product(
        (1, 2, 4), (0, 1, 3), (-3, 0, 7), (True, False), ("ieee", "all_ones", "negative_zero", "none"), (True, False),
        (True, False), (True, False), ("subnormal", "normal", "zero"), (True, False),
    ):  # fmt: skip
        try:
            fmt = sn.FloatFormat(
                e, m, bias=bias, signed=signed, nan_codes=nan_codes, infinities=infinities, negative_zero=negative_zero,
                has_zero=has_zero, lowest_binade=lowest, saturating=saturating, name="mine",
            )  # fmt: skip
        except ValueError:
            continue
        check(fmt)
        made += 1
    assert made > 1800


def test_a_wrong_fact_is_found(monkeypatch):
    """The comparison is compared: a fact that is wrong on either side."""
    fmt = names.format("e4m3fn")
    wrong = facts.FloatFacts(*(getattr(fmt, p) for p in facts.PARAMETERS["float"]))
    wrong.__dict__["emin"] = -5
    with pytest.raises(AssertionError, match="emin is -5, and -6 there"):
        check(fmt, wrong)
    monkeypatch.setattr(formats.FloatFormat, "max_code", property(lambda self: 127))
    with pytest.raises(AssertionError, match="max_code is 126, and 127 there"):
        check(fmt)


def test_only_parameters_are_read():
    """Of an object nothing is read but the parameters of its kind."""

    class Read:
        def __init__(self, fmt):
            self.fmt, self.read = fmt, set()

        def __getattr__(self, name):
            self.read.add(name)
            return getattr(self.fmt, name)

    for name in ("e4m3fnuz", "q4.4"):
        given = Read(names.format(name))
        assert format_of(given) == format_of(name)
        assert given.read == {"kind", *facts.PARAMETERS[given.fmt.kind]}
    given = Read(sn.format("nvfp4"))
    assert block_format_of(given) == BLOCKS["nvfp4"] and given.read == set(facts.PARAMETERS["block"])


def test_block_formats():
    assert [name for name in BLOCKS if name != "mxfp4"] == sn.formats.block_format_names()
    mine = sn.BlockFormat("q1.7", sn.FloatFormat(6, 0, signed=False, specials="none"), None, name="mine")
    for fmt in [*map(sn.format, BLOCKS), mine]:
        own = block_format_of(fmt)
        check(fmt.element, own.element)
        check(fmt.scale, own.scale)
        assert own.block_size == fmt.block_size and (own.tensor_scale is None) == (fmt.tensor_scale is None)
        if fmt.tensor_scale is not None:
            check(fmt.tensor_scale, own.tensor_scale)
        assert str(own) == str(fmt)
    for name in BLOCKS:
        assert block_format_of(name.upper()) == block_format_of(sn.format(name))
    assert set(blocks.SCALE_RULES) == set(SCALE_RULES)


def test_types_of_arrays():
    """The float types of NumPy and of ml_dtypes, and their dtypes."""
    types = [getattr(ml_dtypes, name) for name in dir(ml_dtypes) if name.startswith(("float", "bfloat"))]
    for kind in [np.float16, np.float32, np.float64, float, *types]:
        for given in (kind, np.dtype(kind)):
            want = names.format_of_dtype(np.dtype(kind))
            assert want is not None and format_of(given) == format_of(want)
    custom = sn.CustomFormat.from_table([0.0, 1.0])
    for wrong in (int, np.int8, np.dtype("i4"), np.longdouble, None, 5, Path("e5m2"), custom):
        with pytest.raises(TypeError, match="a format or the name of one is needed"):
            format_of(wrong)


def test_modes_rules_and_profiles():
    assert sorted(rounding.ROUNDING_MODES) == sorted(modes.ROUNDING_MODES)
    assert list(rules.OVERFLOW_RULES) == list(modes.OVERFLOW_RULES)
    assert list(rules.NAN_PROFILES) == list(modes.NAN_PROFILES)
    for left, right in itertools.combinations(modes.NAN_PROFILES, 2):
        same = modes.NAN_PROFILES[left] == modes.NAN_PROFILES[right]
        assert (rules.NAN_PROFILES[left] == rules.NAN_PROFILES[right]) == same
    for name in [*modes.ROUNDING_MODES, *rounding.SHORT_NAMES]:
        assert rounding.rounding_name(name) == modes.rounding_name(name)
    for name, rule in itertools.product(("e5m2", "binary4p3sf", "q4.4", "uq0.8"), [None, *modes.OVERFLOW_RULES, "x"]):
        own, want = (
            parsed(lambda fmt, f=f: f(rule, fmt), names.format(name))  # noqa: B023
            for f in (rules.overflow_name, modes.overflow_name)
        )
        assert own == want, f"{name} {rule}"
    for wrong in ("nearest", "", None, 3, ["up"]):
        with pytest.raises(ValueError, match="unknown rounding mode .*known: nearest_even"):
            rounding.rounding_name(wrong)


def test_flags():
    assert {f.name: int(f) for f in rules.Flags} == {f.name: int(f) for f in modes.Flags}
    for bits in range(32):
        own, flags = rules.Flags(bits), modes.Flags(bits)
        assert own == flags and str(own) == str(flags) and repr(own) == repr(flags) and modes.Flags(own) is flags


@pytest.mark.parametrize("how", ["sequential", "tree", "pairwise"])
def test_orders_of_reduction(how):
    for n in [*range(131), 1024]:
        assert order.reduction_order(n, how) == units.reduction_order(n, how), n


@pytest.mark.parametrize("reduction_order", [order.reduction_order, units.reduction_order])
def test_an_unknown_order_of_reduction(reduction_order):
    with pytest.raises(ValueError, match="reduction must be 'sequential', 'tree' or 'pairwise', got 'ring'"):
        reduction_order(4, "ring")


@cases(
    ("call", "error", "message"),
    [
        (lambda: format_of("e5m"), ValueError, r"unknown format 'e5m' \(known: binary16.*; or eXmY, qI.F"),
        (lambda: format_of("e16m3"), ValueError, "e16m3: a float has 1..15 exponent bits"),
        (lambda: format_of("e8m120"), ValueError, "e8m120: a code has at most 128 bits, got 129"),
        (lambda: format_of("e4m0"), ValueError, "e4m0: without a fraction there is no code for NaN"),
        (lambda: format_of("q124.5"), ValueError, "q124.5: a code of signed fixed point has 2..128 bits"),
        (lambda: format_of("uq0.0"), ValueError, "uq0.0: a code of unsigned fixed point has 1..128 bits"),
        (lambda: format_of("binary8p8se"), ValueError, "binary8p8se: P3109 needs 3 <= K <= 64 and 1 <= P <= K - 1"),
        (lambda: format_of(sn.format("mxfp4")), ValueError, "mxfp4_e2m1 is a block format, whose codes mean nothing"),
        (lambda: block_format_of("mxfp5"), ValueError, "unknown block format 'mxfp5' .known: mxfp8_e4m3"),
        (lambda: ref.block_scale([1], "mxfp4", scale_rule="odd"), ValueError, "unknown scale rule 'odd' .known: floor"),
        (lambda: ref.decode(0, "binary3p3se"), ValueError, "P3109 needs"),
        (lambda: facts.FloatFacts(1, 0, 0, True, "all_ones", True, True, True, "zero", False, False, "none"),
         ValueError, "none: no finite value but zero"),
        (lambda: ref.to_integer(0, "e5m2", 129, True), ValueError, "q129.0: a code of signed fixed point has 2..128"),
        (lambda: ref.encode(1, "e5m2", overflow="wrap"), ValueError, "overflow='wrap' is not for e5m2, .* a float"),
        (lambda: ref.encode(1, "q4.4", overflow="infinity"), ValueError, "'infinity' is not for q4.4, .* fixed point"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_the_reference_imports_nothing_of_softnum_but_itself():
    """No module of it names another part of softnum in an import; and none reads one by importlib."""
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                found = ["." * node.level + (node.module or "")]
            else:
                continue
            for module in found:
                softnum = module.startswith((".", "softnum")) and not module.startswith("softnum.reference")
                assert not softnum and module.split(".")[0] not in ("numpy", "importlib"), f"{path.name}: {module}"
