"""Every operation of an FPU by each machine's rules: flushing, profiles, integers, classes, minimum, fused names.

What is right is computed here in Fractions from the bits of a code, by the manuals' words, not by softnum.
"""

import io
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from softnum.vectors import Space, VectorSpec, check, plan, write
from softnum.vectors.plans.operations import expanded
from tests.support.cases import cases

E, M, BIAS = 5, 2, 15  # e5m2
CODES = np.arange(256, dtype=np.uint8)
LEFT, RIGHT = (x.ravel() for x in np.meshgrid(CODES, CODES, indexing="ij"))
SOME = [c | s for s in (0, 0x80) for c in (0, 1, 3, 4, 0x3B, 0x3C, 0x3D, 0x7B, 0x7C, 0x7D, 0x7E, 0x7F)]
FEW = tuple(np.array(x, np.uint8).ravel() for x in np.meshgrid(SOME, SOME))


def value(code):
    """A code of e5m2: a Fraction, "inf", "-inf", "qnan" or "snan"; the sign stands apart."""
    sign, field, fraction = code >> 7, code >> M & 31, code & 3
    if field == 31:
        return ("-inf" if sign else "inf") if fraction == 0 else ("qnan" if fraction & 2 else "snan")
    size = Fraction(fraction, 4) * Fraction(2) ** (1 - BIAS) if not field else (
        Fraction(4 + fraction, 4) * Fraction(2) ** (field - BIAS)
    )  # fmt: skip
    return -size if sign else size


def key(code):
    """For comparing numbers: -0 below +0."""
    v = value(code)
    if nan(code):
        return ()
    size = Fraction(1 << 20) if v in ("inf", "-inf") else abs(v)
    return (-size if code >> 7 else size, -(code >> 7))


def nan(code):
    return value(code) in ("qnan", "snan")


def results(spec, *operands):
    block = spec.evaluate(operands)
    return block.result.tolist(), block.flags.tolist()


def chosen(rule, op, a, b):
    """(result, flags) of a minimum by a manual's rule, NaNs quiet as `deliver` says."""
    less = key(a) < key(b) if op.startswith("min") else key(a) > key(b)
    better = a if (not nan(a) and not nan(b) and less) else b
    signals = 16 if "snan" in (value(a), value(b)) else 0
    nans = [x for x in (a, b) if nan(x)]
    if rule == "x86":
        if nans:
            return b, 16
        return (b if value(a) == value(b) else better), 0
    number = rule in ("riscv", "cuda") or (rule == "ieee2019" and op.endswith("_number"))
    if len(nans) == 1 and (number or ((rule == "ieee2008" or op.endswith("_number")) and not signals)):
        return (b if nan(a) else a), signals
    if nans:
        first = next((x for x in nans if value(x) == "snan"), nans[0])
        return {"arm": first | 2, "cuda": 0x7F}.get(rule, 0x7E), signals
    return better, 0


@cases(
    "op, rule",
    [(op, rule) for op in ("minimum", "maximum_number") for rule in ("ieee2019", "ieee2008", "riscv", "arm", "cuda")]
    + [("minimum", "x86"), ("maximum", "x86")],
)
def test_extrema(op, rule):
    nan_rule = {"arm": "arm", "cuda": "cuda", "x86": "x86"}.get(rule)
    spec = VectorSpec.make(op, "e5m2", minmax=rule, nan=nan_rule)
    want = [chosen(rule, op, a, b) for a, b in zip(*(x.tolist() for x in FEW), strict=True)]
    assert list(zip(*results(spec, *FEW), strict=True)) == want


@cases("profile, op, rule", [("riscv", "minimum", "riscv"), ("x86", "maximum", "x86"), ("ieee", "minimum", "ieee2019")])
def test_profiles_choose_the_rule_and_options_override_it(profile, op, rule):
    assert VectorSpec.make(op, "binary16", profile=profile).minmax == rule
    other = VectorSpec.make(op, "binary16", profile=profile, minmax="ieee2008", tininess="before", nan="arm")
    assert (other.minmax, other.tininess, other.nan) == ("ieee2008", "before", "arm")


def test_profiles_state_nan_and_tininess():
    rules = {p: VectorSpec.make("add", "binary32", profile=p) for p in ("riscv", "arm", "x86", "ieee", "cuda")}
    assert {p: (s.nan, s.tininess) for p, s in rules.items()} == {
        "riscv": ("canonical", "after"), "arm": ("arm", "before"), "x86": ("x86", "after"),
        "ieee": ("canonical", "after"), "cuda": ("cuda", "after"),
    }  # fmt: skip
    inf, minus = np.array([0x7F800000], np.uint32), np.array([0xFF800000], np.uint32)
    assert [hex(s.evaluate((inf, minus)).result[0]) for s in rules.values()] == [
        "0x7fc00000", "0x7fc00000", "0xffc00000", "0x7fc00000", "0x7fffffff",
    ]  # fmt: skip


def test_classify():
    bits = {"-inf": 0, "inf": 7, "snan": 8, "qnan": 9}

    def bit(code):
        v, minus = value(code), code >> 7
        if isinstance(v, str):
            return bits[v]
        order = (3, 4) if v == 0 else (2, 5) if abs(v) < Fraction(2) ** (1 - BIAS) else (1, 6)
        return order[0] if minus else order[1]

    mask = results(VectorSpec.make("classify", "e5m2", profile="riscv"), CODES)
    assert mask == ([1 << bit(c) for c in range(256)], [0] * 256)
    numbers = results(VectorSpec.make("classify", "e5m2"), CODES)[0]
    assert numbers == [(bit(c) + 2) % 10 for c in range(256)]  # IEEE 754 begins with signalingNaN, quietNaN


def test_sign_injection():
    for op, sign in (("sign_copy", lambda a, b: b), ("sign_negate", lambda a, b: ~b), ("sign_xor", lambda a, b: a ^ b)):
        want = (LEFT & 0x7F | sign(LEFT, RIGHT) & 0x80).tolist()
        assert results(VectorSpec.make(op, "e5m2", profile="x86"), LEFT, RIGHT) == (want, [0] * 65536)


@cases("op, product, addend", [("fmsub", 1, -1), ("fnmadd", -1, -1), ("fnmsub", -1, 1)])
def test_fused_names(op, product, addend):
    spec = VectorSpec.make(op, "binary16", out_fmt="binary64", rounding="down", nan="x86")
    rng = np.random.default_rng(5)
    a, b, c = (rng.integers(0, 1 << 16, 3000).astype(np.uint16) for _ in "abc")
    got = spec.evaluate((a, b, c)).result.view(np.float64)
    x, y, z = (v.view(np.float16).astype(np.float64) for v in (a, b, c))
    with np.errstate(all="ignore"):
        want = product * (x * y) + addend * z  # exact: 22 bits, aligned within 53 of them in most
    exact = np.array([
        np.isfinite([p, q, r]).all()
        and Fraction(float(w)) == product * Fraction(p) * Fraction(q) + addend * Fraction(r)
        for p, q, r, w in zip(x.tolist(), y.tolist(), z.tolist(), want.tolist(), strict=True)
    ])  # fmt: skip
    assert exact.mean() > 0.8 and (got[exact] == want[exact]).all()
    assert plan(spec, count=2000).count == 2000
    one, bad = np.array([0x3C00], np.uint16), np.array([0xFE01], np.uint16)
    keeps = [VectorSpec.make(op, "binary16", nan=n).evaluate((bad, one, one)).result[0] for n in ("x86", "arm")]
    assert keeps[0] == 0xFE01 and keeps[1] == (0x7E01 if product < 0 else 0xFE01)  # Arm's FPNeg, DDI 0487


def test_integers_to_floats():
    spec = VectorSpec.make("from_integer", "i32", out_fmt="binary16")
    numbers = np.array([0, 1, -1, 2049, 2051, 65519, 65520, -(1 << 31)], np.int64).astype(np.int32)
    block = spec.evaluate((numbers.view(np.uint32),))
    assert block.result.view(np.float16).tolist() == [0, 1, -1, 2048, 2052, 65504, np.inf, -np.inf]
    assert block.flags.tolist() == [0, 0, 0, 1, 1, 1, 5, 5]
    assert spec.facts()["format"] == "i32" and "--op from_integer --format i32" in spec.options()
    with pytest.raises(ValueError, match="takes an integer type"):
        VectorSpec.make("from_integer", "binary16", out_fmt="binary32")


@cases("source, target, nan", [("binary32", "i32", 0), ("binary32", "ui64", 1 << 63), ("binary64", "i32", 1 << 31)])
def test_ptx_cvt_of_nan(source, target, nan):
    spec = VectorSpec.make("to_integer", source, out_fmt=target, profile="cuda")
    codes = np.array([np.nan, np.inf], source.replace("binary", "float"))
    got = spec.evaluate((codes.view(spec.formats[0].storage_dtype),))
    highest = (1 << spec.out_fmt.bits - spec.out_fmt.signed) - 1
    assert got.result.tolist() == [nan, highest] and got.flags.tolist() == [16, 16]


def is_flushed(a, b, when):
    """Whether the product of two codes becomes zero: tiny before or after rounding, or subnormal, but not zero."""
    product = abs(value(a) * value(b))
    if not product:
        return False
    exponent = product.numerator.bit_length() - product.denominator.bit_length()
    exponent -= product < Fraction(2) ** exponent
    least, last = Fraction(2) ** (1 - BIAS), Fraction(2) ** (exponent - M)
    rounded_free = round(product / last) * last  # 3 bits, an exponent of no bound; Python rounds to nearest even
    delivered = round(product / (least / 4)) * least / 4
    tiny = {"before": product, "after": rounded_free, "subnormal": delivered or least}[when]
    return tiny < least


@cases("when, inputs", [("before", True), ("after", False), ("subnormal", True)])
def test_flushing(when, inputs):
    left, right = (x[(LEFT & 0x7C != 0x7C) & (RIGHT & 0x7C != 0x7C)][::11] for x in (LEFT, RIGHT))
    read = [np.where(x & 0x7C, x, x & 0x80) if inputs else x for x in (left, right)]
    got = VectorSpec.make("multiply", "e5m2", flush_inputs=inputs, flush_results=when).evaluate((left, right))
    plain = VectorSpec.make("multiply", "e5m2").evaluate(tuple(read))
    zeros = np.array([is_flushed(a, b, when) for a, b in zip(*(x.tolist() for x in read), strict=True)])
    assert zeros.sum() > 100
    assert (got.result == np.where(zeros, (left ^ right) & 0x80, plain.result)).all()
    assert (got.flags == np.where(zeros, 3, plain.flags)).all()


@cases(
    "options, text",
    [
        (dict(op="negate", fmt="e5m2", flush_inputs=True), "nothing is flushed"),
        (dict(op="compare_less", fmt="e5m2", flush_results="after"), "gives none with subnormals"),
        (dict(op="add", fmt="q4.4", flush_inputs=True), "no subnormals"),
        (dict(op="add", fmt="e5m2", flush_results="late"), "before, after, subnormal or arm"),
        (dict(op="add", fmt="e5m2", minmax="x86"), "is for minimum"),
        (dict(op="minimum", fmt="e5m2", minmax="vax"), "must be one of"),
        (dict(op="minimum_number", fmt="e5m2", minmax="x86"), "MINSS"),
        (dict(op="add", fmt="binary64", profile="cuda"), "no manual states the NaN"),
        (dict(op="add", fmt="e5m2", profile="risv"), "did you mean 'riscv'"),
        (dict(op="classify", fmt="q4.4"), "of floats"),
        (dict(op="fmsub", fmt="q4.4"), "negates terms"),
        (dict(op="fnmadd", fmt="e4m3fnuz", out_fmt="binary16"), "negates terms"),
        (dict(op="sign_xor", fmt="binary8p3ue"), "sign bit"),
    ],
)
def test_what_says_nothing_is_refused(options, text):
    with pytest.raises(ValueError, match=text):
        VectorSpec.make(options.pop("op"), options.pop("fmt"), **options)


def test_the_contract_of_names():
    names = {f"compare_{r}{s}" for r in ("equal", "less", "less_equal") for s in ("", "_signaling")}
    assert {expanded(n, {})[0] for n in names} == {
        f"compare_{k}_{r}" for k in ("quiet", "signaling") for r in ("equal", "less", "less_equal")
    }
    assert expanded("compare_less_signaling", {})[0] == "compare_signaling_less"


@cases("op, profile", [("sign_xor", None), ("minimum", "riscv"), ("maximum_number", "arm"), ("minimum", "x86")])
def test_differences_of_what_does_not_round_are_explained(op, profile):
    spec = VectorSpec.make(op, "e5m2", profile=profile)
    block = spec.evaluate(FEW)
    rows = zip(*FEW, block.result ^ (np.arange(len(block)) % 3 == 0), block.flags, strict=True)
    text = "".join(f"{a:02X} {b:02X} {r:02X} {f:02X}\n" for a, b, r, f in rows)
    report = check(io.BytesIO(text.encode()), op, "e5m2", profile=profile)
    assert report.result_failures == len(range(0, len(block), 3)) and report.causes


def written(tmp_path, spec, **options):
    path = tmp_path / "v.txt"
    write(plan(spec, count=500), path, **options)
    return path


@cases(
    "op, fmt, options",
    [
        ("multiply", "binary16", {"flush_inputs": True, "flush_results": "after"}),
        ("minimum", "binary16", {"profile": "x86"}),
        ("fnmadd", "binary32", {"profile": "arm"}),
        ("classify", "binary32", {"profile": "riscv"}),
        ("from_integer", "ui8", {"out_fmt": "bfloat16"}),
        ("to_integer", "binary32", {"out_fmt": "i8", "profile": "cuda", "exact": False}),
        ("add", "binary32", {"space": Space.make(no_nan=True, exponents="-3:3", only="ties,cancellation:1")}),
    ],
)
def test_files_say_what_they_are_of(tmp_path, op, fmt, options):
    if "cancellation:1" in str(options):
        options = {"space": Space.make(no_nan=True, exponents="-3:3", only="exact,cancellation:1")}
    spec = VectorSpec.make(op, fmt, **options)
    path = written(tmp_path, spec)
    report = check(path)
    assert report.ok and report.spec == spec
    if spec.flush_inputs:
        with pytest.raises(ValueError, match="the header says flush"):
            check(path, flush_results="before")
    if "profile" in options:
        assert check(path, profile=options["profile"]).ok
        other = "riscv" if options["profile"] != "riscv" else None
        if other and op != "classify":
            with pytest.raises(ValueError, match="the header says"):
                check(path, profile=other)


def test_a_design_that_flushes_comes_out_clean_and_one_that_does_not_is_told():
    spec = VectorSpec.make("multiply", "e5m2", flush_inputs=True, flush_results="after")
    out = io.BytesIO()
    block = spec.evaluate((LEFT, RIGHT))
    plain = VectorSpec.make("multiply", "e5m2").evaluate((LEFT, RIGHT))
    for got, flags in ((block.result, block.flags), (plain.result, plain.flags)):
        rows = zip(LEFT, RIGHT, got, flags, strict=True)
        out = io.BytesIO("".join(f"{a:02X} {b:02X} {r:02X} {f:02X}\n" for a, b, r, f in rows).encode())
        report = check(out, "multiply", "e5m2", flush_inputs=True, flush_results="after", explain=False)
        assert report.ok == (got is block.result)


@cases("line, text", [("flush: sometimes", "flush must be"), ("excluded: zero", "excluded must be"),
                      ("only: nice", "only takes"), ("computes: a + b", "computes a . b")])  # fmt: skip
def test_headers_that_lie(tmp_path, line, text):
    path = written(tmp_path, VectorSpec.make("fmsub", "binary16"))
    lines = [row for row in path.read_text().splitlines() if not row.startswith(f"# {line.split(':')[0]}:")]
    path.write_text("\n".join([lines[0], f"# {line}", *lines[1:]]) + "\n")
    with pytest.raises(ValueError, match=text):
        check(path)


@cases("dialect", ["softnum", "readmemh", "readmemb", "csv", "jsonl", "npz"])
def test_a_file_without_flags(tmp_path, dialect):
    spec = VectorSpec.make("add", "binary16")
    bare = replace(spec, flags=False)
    path = tmp_path / "v"
    write(plan(bare, count=300), path, dialect=dialect, header=dialect != "readmemb")
    options = {"op": "add", "fmt": "binary16", "dialect": dialect}
    report = check(path, **options, ignore_flags=True)
    assert report.ok and report.vectors == 300
    with pytest.raises(ValueError, match=r"flags|digit\(s\)"):
        check(path, **options)
    write(plan(spec, count=300), path, dialect=dialect)
    assert check(path, **options, ignore_flags=True).ok


def test_a_difference_in_a_file_without_flags_is_explained():
    block = VectorSpec.make("multiply", "e5m2").evaluate((LEFT, RIGHT))
    wrong = VectorSpec.make("multiply", "e5m2", rounding="toward_zero").evaluate((LEFT, RIGHT)).result
    rows = "".join(f"{a:02X} {b:02X} {r:02X}\n" for a, b, r in zip(LEFT, RIGHT, wrong, strict=True))
    report = check(io.BytesIO(rows.encode()), "multiply", "e5m2", ignore_flags=True)
    assert report.result_failures == (block.result != wrong).sum() and report.causes[0].cause == "truncation"
    assert "flags" not in str(report.first[0].to_dict(report.spec)) and "flags" not in str(report).splitlines()[0]
