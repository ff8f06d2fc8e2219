"""softnum beside its peers: what both deliver, and how fast, run in one go: ``python -m benchmarks --only peers``.

Peers are packages that compute in number formats and install from the package index without a deep-learning framework:
ml_dtypes, gfloat, apytypes, softfloatpy (Berkeley SoftFloat), softposit (SoftPosit) and pychop; and two libraries of C
and of C++, where variables name their sources (`benchmarks.compiled_peers`). What is not there is left out, and said.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from importlib import metadata

import numpy as np

import softnum as sn
from benchmarks.compiled_peers import COMPILED, CPFLOAT_MODES, CPFloat, Universal, built, finite_codes, version
from benchmarks.measure import Row, against, one_thread

__all__ = ["PEERS", "Agreement", "Difference", "agreements", "differences", "rows", "versions"]

PEERS = ("ml_dtypes", "gfloat", "apytypes", "softfloatpy", "softposit", "pychop")
ML_DTYPES = {
    "e5m2": "float8_e5m2", "e4m3fn": "float8_e4m3fn", "e4m3": "float8_e4m3", "e3m4": "float8_e3m4",
    "e4m3fnuz": "float8_e4m3fnuz", "e5m2fnuz": "float8_e5m2fnuz", "e4m3b11fnuz": "float8_e4m3b11fnuz",
    "e3m2fn": "float6_e3m2fn", "e2m3fn": "float6_e2m3fn", "e2m1fn": "float4_e2m1fn", "bfloat16": "bfloat16",
}  # fmt: skip
GFLOAT = {
    "e5m2": "format_info_ocp_e5m2", "e4m3fn": "format_info_ocp_e4m3", "binary16": "format_info_binary16",
    "bfloat16": "format_info_bfloat16",
}  # fmt: skip
GFLOAT_MODES = {
    "nearest_even": "TiesToEven", "nearest_away": "TiesToAway", "toward_zero": "TowardZero", "up": "TowardPositive",
    "down": "TowardNegative",
}  # fmt: skip
#: posits of the drafts, whose exponents grow with the width, and of es = 2
SOFTPOSIT = {"posit8": "posit8_es0", "posit16": "posit16_es1", "posit32": "posit32"}
PYCHOP_MODES = {"nearest_even": 1, "up": 2, "down": 3, "toward_zero": 4, "nearest_away": 8}
SOFTFLOAT_MODES = {
    "nearest_even": "NEAR_EVEN", "nearest_away": "NEAR_MAX_MAG", "toward_zero": "MIN_MAG", "up": "MAX", "down": "MIN",
}  # fmt: skip


@dataclass(frozen=True)
class Agreement:
    """How many of so many results differ, NaNs being equal to each other."""

    what: str
    peer: str
    compared: int
    differ: int


@dataclass(frozen=True)
class Difference:
    """One question that both answer, differently, and what decides between the answers."""

    what: str
    peer: str
    peer_result: str
    softnum_result: str
    why: str


def _installed(name: str):
    try:
        if name == "gfloat":
            importlib.import_module("gfloat.formats")
        return importlib.import_module(name)
    except ImportError:
        return None


def versions() -> dict[str, str]:
    """The versions of softnum, NumPy and the peers, or "not installed"."""
    found = {"softnum": sn.__version__, "NumPy": np.__version__}
    found |= {name: metadata.version(name) if _installed(name) else "not installed" for name in PEERS}
    return found | {peer.name: version(peer) for peer in COMPILED}


def _differ(mine, peers) -> int:
    mine, peers = np.asarray(mine, np.float64), np.asarray(peers, np.float64)
    return int(np.count_nonzero(~((mine == peers) | (np.isnan(mine) & np.isnan(peers)))))


def _numbers(count: int, lowest: int, highest: int) -> np.ndarray:
    """Normally distributed numbers times powers of two."""
    rng = np.random.Generator(np.random.Philox(5))
    return rng.standard_normal(count) * np.exp2(rng.integers(lowest, highest, count))


# -- results -----------------------------------------------------------------------------------------------------------
def agreements() -> Iterator[Agreement]:
    """Results counted over whole domains, or over random numbers."""
    for name, compare in (
        ("ml_dtypes", _with_ml_dtypes), ("gfloat", _with_gfloat), ("apytypes", _with_apytypes),
        ("softfloatpy", _with_softfloat), ("softposit", _with_softposit), ("pychop", _with_pychop),
    ):  # fmt: skip
        if _installed(name):
            yield from compare(_installed(name))
    if cpfloat := built(CPFloat):
        yield from _with_cpfloat(cpfloat)
    if universal := built(Universal):
        yield from _with_universal(universal)


def _with_ml_dtypes(ml_dtypes) -> Iterator[Agreement]:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    for fmt, dtype in ML_DTYPES.items():
        x = halves if sn.format(fmt).has_nan else halves[~np.isnan(halves)]
        with np.errstate(all="ignore"):
            x = x.astype(np.float32)
            theirs = x.astype(getattr(ml_dtypes, dtype))
            yield Agreement(
                f"every binary16 number to {fmt}", "ml_dtypes", x.size, _differ(sn.quantize(x, fmt), theirs)
            )
    for fmt in ("e5m2", "e4m3fn", "e4m3fnuz", "e3m4"):
        codes = np.arange(256, dtype=np.uint8)
        a, b = codes[:, None], codes[None, :]
        x, y = (c.view(getattr(ml_dtypes, ML_DTYPES[fmt])) for c in (a, b))
        with np.errstate(all="ignore"):
            pairs = {"add": x + y, "multiply": x * y, "divide": x / y}
            differ = sum(_differ(sn.decode(getattr(sn, op)(a, b, fmt), fmt), got) for op, got in pairs.items())
        yield Agreement(f"a + b, a * b, a / b, every pair of {fmt}", "ml_dtypes", 3 << 16, differ)


def _with_gfloat(gfloat) -> Iterator[Agreement]:
    x = _numbers(20_000, -24, 20)
    for fmt, info in GFLOAT.items():
        for mode, theirs in GFLOAT_MODES.items():
            got = gfloat.round_ndarray(getattr(gfloat.formats, info), x, gfloat.RoundMode[theirs])
            yield Agreement(
                f"binary64 to {fmt}, {mode}", "gfloat", x.size, _differ(sn.quantize(x, fmt, rounding=mode), got)
            )


def _with_apytypes(apy) -> Iterator[Agreement]:
    x = _numbers(20_000, -20, 17)
    array = apy.APyFloatArray
    for fmt in ("e5m2", "e6m9", "bfloat16", "binary16"):
        f = sn.format(fmt)
        widths = f.exponent_bits, f.mantissa_bits
        a, b = sn.array(x[::2], fmt), sn.array(x[1::2], fmt)
        p, q = array.from_float(x[::2], *widths), array.from_float(x[1::2], *widths)
        yield Agreement(f"binary64 to {fmt}, from_float", "apytypes", len(a), _differ(a, p.to_numpy()))
        cast = array.from_float(x, 11, 52).cast(*widths)
        yield Agreement(f"binary64 to {fmt}, cast", "apytypes", x.size, _differ(sn.quantize(x, fmt), cast.to_numpy()))
        pairs = ((a + b, p + q), (a * b, p * q), (a / b, p / q))
        differ = sum(_differ(mine, theirs.to_numpy()) for mine, theirs in pairs)
        yield Agreement(f"a + b, a * b, a / b in {fmt}", "apytypes", 3 * len(a), differ)
    p, q = (array.from_float(v.reshape(32, 32), 5, 2) for v in (x[:1024], x[1024:2048]))
    with apy.APyFloatAccumulatorContext(exp_bits=6, man_bits=9):
        got = (p @ q).to_numpy()
    a, b = (v.to_numpy().astype(np.float32) for v in (p, q))
    unit = sn.MadUnit("e6m9", operand="e5m2", product="e6m9")
    yield Agreement("32^3 product of e5m2, accumulated in e6m9", "apytypes", 1024, _differ(sn.matmul(a, b, unit), got))


@contextmanager
def _softfloat_mode(sf, mode: str):
    before = sf.get_rounding_mode()
    sf.set_rounding_mode(sf.RoundingMode[mode])
    try:
        yield
    finally:
        sf.set_rounding_mode(before)


def _with_softfloat(sf) -> Iterator[Agreement]:
    rng = np.random.Generator(np.random.Philox(6))
    codes = rng.integers(0, 1 << 16, (3, 5000)).astype(np.uint16)
    floats = [[sf.Float16.from_bytes(int(c).to_bytes(2, "big")) for c in row] for row in codes]
    for mode, theirs in SOFTFLOAT_MODES.items():
        got, raised = sn.fma(*codes, "binary16", rounding=mode, return_flags=True)
        differ = 0
        with _softfloat_mode(sf, theirs):
            for i, numbers in enumerate(zip(*floats, strict=True)):
                sf.set_exception_flags(sf.ExceptionFlag(0))
                want = int.from_bytes(sf.f16_mul_add(*numbers).to_bytes(), "big")
                differ += want != int(got[i]) or int(sf.get_exception_flags()) != int(raised[i])
        yield Agreement(f"binary16 fma of random codes, {mode}: code and flags", "softfloatpy", len(got), differ)


def _posits(softposit, name: str, codes) -> list:
    found = [getattr(softposit, name)(0) for _ in codes]
    for one, code in zip(found, codes.tolist(), strict=True):
        one.fromBits(code)
    return found


def _codes_of(posits, dtype) -> np.ndarray:
    return np.array([int(p.v.v) & np.iinfo(dtype).max for p in posits], dtype)


def _with_softposit(softposit) -> Iterator[Agreement]:
    rng = np.random.Generator(np.random.Philox(8))
    for name, fmt in SOFTPOSIT.items():
        dtype = sn.format(fmt).storage_dtype
        a, b = rng.integers(0, np.iinfo(dtype).max, (2, 5000), dtype, endpoint=True)
        if dtype == np.uint8:
            a, b = (x.reshape(-1) for x in np.meshgrid(*[np.arange(256, dtype=dtype)] * 2))
        pairs = list(zip(_posits(softposit, name, a), _posits(softposit, name, b), strict=True))
        pairs_of = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv}
        differ = sum(
            np.count_nonzero(getattr(sn, mine)(a, b, fmt) != _codes_of((theirs(p, q) for p, q in pairs), dtype))
            for mine, theirs in pairs_of.items()
        )
        yield Agreement(f"a + b, a - b, a * b, a / b in {fmt}: codes", "softposit", 4 * len(a), int(differ))
        roots = _codes_of((p.sqrt() for p, _ in pairs), dtype)
        yield Agreement(f"roots in {fmt}: codes", "softposit", len(a), int(np.count_nonzero(sn.sqrt(a, fmt) != roots)))


def _with_pychop(pychop) -> Iterator[Agreement]:
    pychop.backend("numpy")
    x = _numbers(20_000, -24, 14)
    for fmt in ("e5m2", "bfloat16", "binary16"):
        f = sn.format(fmt)
        for mode, theirs in PYCHOP_MODES.items():
            got = pychop.Chop(f.exponent_bits, f.mantissa_bits, rmode=theirs)(x)
            yield Agreement(
                f"binary64 to {fmt}, {mode}", "pychop", x.size, _differ(sn.quantize(x, fmt, rounding=mode), got)
            )


def _with_cpfloat(cpfloat: CPFloat) -> Iterator[Agreement]:
    x = _numbers(1 << 18, -30, 20)
    for fmt in ("binary16", "bfloat16", "e5m2", "e4m3"):
        for mode in CPFLOAT_MODES:
            differ = sum(
                _differ(sn.quantize(y, fmt, rounding=mode), cpfloat.quantize(y, fmt, mode))
                for y in (x, x.astype(np.float32))
            )
            yield Agreement(f"binary64 and binary32 to {fmt}, {mode}", "CPFloat", 2 * x.size, differ)
    a, b = (sn.encode(v, "binary16") for v in x.reshape(2, -1))
    values = [sn.decode(v, "binary16", np.float32) for v in (a, b)]
    for mode in ("nearest_even", "up", "toward_zero", "to_odd"):
        for op in ("add", "multiply"):
            got = cpfloat.operate(op, *values, "binary16", mode)
            mine = sn.decode(getattr(sn, op)(a, b, "binary16", rounding=mode), "binary16")
            yield Agreement(f"{op} in binary16, carried by binary32, {mode}", "CPFloat", a.size, _differ(mine, got))


def _with_universal(universal: Universal) -> Iterator[Agreement]:
    x = _numbers(1 << 18, -30, 20).astype(np.float32)
    for fmt in universal.formats:
        got = universal.decode(universal.encode(x, fmt), fmt)
        yield Agreement(f"binary32 to {fmt}", "Universal", x.size, _differ(sn.quantize(x, fmt), got))
        a, b = finite_codes(fmt, 1 << 18)
        differ = 0
        for op in universal.operations:
            got = universal.decode(universal.operate(op, a, b, fmt), fmt)
            differ += _differ(sn.decode(getattr(sn, op)(a, b, fmt), fmt).astype(np.float32), got)
        pairs = "every pair" if sn.format(fmt).bits == 8 else "random codes"
        yield Agreement(f"a + b, a - b, a * b, a / b in {fmt}, {pairs}", "Universal", 4 * a.size, differ)


def differences() -> Iterator[Difference]:
    """Questions that the peers answer otherwise."""
    if ml_dtypes := _installed("ml_dtypes"):
        yield from _ml_dtypes_differs(ml_dtypes)
    if gfloat := _installed("gfloat"):
        yield from _gfloat_differs(gfloat)
    if apy := _installed("apytypes"):
        yield from _apytypes_differs(apy)
    if cpfloat := built(CPFloat):
        yield from _cpfloat_differs(cpfloat)
    if universal := built(Universal):
        infinity = universal.encode(np.float32([np.inf]), "binary16")[0]
        yield Difference(
            "the code of infinity in its cfloat of 16 bits, 5 of them the exponent's", "Universal", f"{infinity:#06x}",
            f"{int(sn.encode(np.inf, 'binary16')):#06x}", "softnum's is IEEE 754's binary16",
        )  # fmt: skip


def _shown(x) -> str:
    return f"{float(x):.9g}"


def _ml_dtypes_differs(ml_dtypes) -> Iterator[Difference]:
    x = 1.125 + 2.0**-40
    yield Difference(
        "1.125 + 2^-40 in binary64, to e5m2", "ml_dtypes", _shown(np.float64(x).astype(ml_dtypes.float8_e5m2)),
        _shown(sn.quantize(x, "e5m2")), "it lies above the middle of 1 and 1.25; in float32 it becomes the middle",
    )  # fmt: skip
    yield Difference(
        "3 to e8m0fnu, a tie of 2 and 4", "ml_dtypes", _shown(np.float32(3).astype(ml_dtypes.float8_e8m0fnu)),
        _shown(sn.quantize(3.0, "e8m0fnu")), "softnum calls the code even whose lowest bit is 0: that of 2",
    )  # fmt: skip
    with np.errstate(all="ignore"):
        zero = _shown(np.float32(0).astype(ml_dtypes.float8_e8m0fnu))
    yield Difference(
        "0 to e8m0fnu, which has no zero", "ml_dtypes", zero, _shown(sn.quantize(0.0, "e8m0fnu")),
        "softnum rounds to the nearest value, with flags",
    )  # fmt: skip
    ones = np.ones(4096, ml_dtypes.bfloat16)
    mine = sn.Array(ones)
    unit, wide = (sn.MadUnit(accumulator, operand="bfloat16") for accumulator in ("bfloat16", "binary32"))
    yield Difference(
        "sum of 4096 ones in bfloat16: a.sum(); a @ a", "ml_dtypes", f"{_shown(ones.sum())}; {_shown(ones @ ones)}",
        f"{_shown(sn.sum(mine, unit))}; {_shown(sn.dot(mine, mine, unit))}",
        f"one unit, which states the accumulator, for both; accumulated in binary32: {_shown(sn.sum(mine, wide))}",
    )  # fmt: skip


def _gfloat_differs(gfloat) -> Iterator[Difference]:
    info, e8m0 = gfloat.formats.format_info_ocp_e2m1, gfloat.formats.format_info_ocp_e8m0
    try:
        theirs = _shown(gfloat.round_float(info, 100.0))
    except ValueError as error:
        theirs = f"ValueError: {error}"
    yield Difference(
        "100 to e2m1fn, without a saturation switch", "gfloat", theirs, _shown(sn.quantize(100.0, "e2m1fn")),
        "where there is neither infinity nor NaN, softnum's default is the largest value",
    )  # fmt: skip
    yield Difference(
        "0 to e8m0fnu, which has no zero", "gfloat", _shown(gfloat.round_float(e8m0, 0.0)),
        _shown(sn.quantize(0.0, "e8m0fnu")), "0 is no value of the format",
    )  # fmt: skip


def _apytypes_differs(apy) -> Iterator[Difference]:
    x = float(Fraction(2) ** -14 * Fraction(99, 100))
    cast = apy.APyFloat.from_float(x, 11, 52).cast(5, 2)
    yield Difference(
        "0.99 * 2^-14 in binary64, to e5m2, by cast", "apytypes", _shown(cast), _shown(sn.quantize(x, "e5m2")),
        "the nearest value is the smallest normal, 2^-14",
    )  # fmt: skip


def _cpfloat_differs(cpfloat: CPFloat) -> Iterator[Difference]:
    x, y = np.float32([1]), np.float32([2.0**-60])
    theirs = cpfloat.operate("add", x, y, "binary16", "up")[0]
    codes = [sn.encode(v, "binary32") for v in (x, y)]
    mine = sn.decode(sn.add(*codes, "binary32", out_fmt="binary16", rounding="up"), "binary16")[0]
    yield Difference(
        "1 + 2^-60 of binary32, in binary16, rounded up", "CPFloat", _shown(theirs), _shown(mine),
        "the least number above 1: CPFloat adds in binary32 first, to nearest",
    )  # fmt: skip
    at = np.float32([480])
    yield Difference(
        "480 to its E4M3 (emax 8)", "CPFloat", _shown(cpfloat.round_to(at, 4, -6, 8)[0]),
        _shown(sn.quantize(at, "e4m3fn")[0]), "in OCP's E4M3 the code of 480 is NaN",
    )  # fmt: skip
    signalling = np.array([0x7F800001], np.uint32).view(np.float32)
    yield Difference(
        "a signalling NaN of binary32 to binary16", "CPFloat", _shown(cpfloat.quantize(signalling, "binary16")[0]),
        _shown(sn.quantize(signalling, "binary16")[0]), "a NaN is no number beyond the range",
    )  # fmt: skip


# -- speed -------------------------------------------------------------------------------------------------------------
def rows() -> Iterator[Row]:
    """The same work by a peer and by softnum on one thread, taken in turn: the peer's time, and in softnum's."""
    with one_thread():
        yield from _rows()


def _rows() -> Iterator[Row]:
    rng = np.random.Generator(np.random.Philox(7))
    if ml_dtypes := _installed("ml_dtypes"):
        yield from _ml_dtypes_rows(ml_dtypes, rng)
    if gfloat := _installed("gfloat"):
        x = rng.standard_normal(1 << 14)
        info = gfloat.formats.format_info_ocp_e5m2
        yield _row(
            "gfloat round_ndarray, float64 to e5m2", x.size,
            lambda: gfloat.round_ndarray(info, x), lambda: sn.quantize(x, "e5m2", threads=1),
        )  # fmt: skip
    if apy := _installed("apytypes"):
        yield from _apytypes_rows(apy, rng)
    if softposit := _installed("softposit"):
        codes = sn.encode(rng.standard_normal((2, 2000)), "posit16_es1")
        pairs = list(zip(*(_posits(softposit, "posit16", row) for row in codes), strict=True))
        yield _row(
            "softposit posit16 addition, a call each", len(pairs),
            lambda: [p + q for p, q in pairs], lambda: sn.add(*codes, "posit16_es1"),
        )  # fmt: skip
    if cpfloat := built(CPFloat):
        yield from _cpfloat_rows(cpfloat, rng)
    if universal := built(Universal):
        yield from _universal_rows(universal, rng)
    if pychop := _installed("pychop"):
        pychop.backend("numpy")
        y, chop = rng.standard_normal(1 << 16), pychop.Chop(5, 10)
        yield _row(
            "pychop, float64 to binary16", y.size, lambda: chop(y), lambda: sn.quantize(y, "binary16", threads=1)
        )
    if sf := _installed("softfloatpy"):
        codes = [sn.encode(rng.standard_normal(2000), "binary32") for _ in range(3)]
        floats = [[sf.Float32.from_bytes(int(c).to_bytes(4, "big")) for c in row] for row in codes]
        triples = list(zip(*floats, strict=True))
        yield _row(
            "softfloatpy f32_mul_add, a call each", len(triples),
            lambda: [sf.f32_mul_add(*t) for t in triples], lambda: sn.fma(*codes, "binary32", return_flags=True),
        )  # fmt: skip


def _cpfloat_rows(cpfloat: CPFloat, rng) -> Iterator[Row]:
    x = rng.standard_normal(1 << 18, dtype=np.float32)
    for fmt, mode in (
        ("binary16", "nearest_even"), ("bfloat16", "nearest_even"), ("e4m3", "nearest_even"), ("binary16", "up"),
        ("binary16", "toward_zero"), ("binary16", "to_odd"), ("binary16", "stochastic"),
    ):  # fmt: skip
        key = {"key": 1} if mode == "stochastic" else {}
        yield _row(
            f"CPFloat, float32 to {fmt}, {mode}", x.size, lambda: cpfloat.quantize(x, fmt, mode),  # noqa: B023
            lambda: sn.quantize(x, fmt, rounding=mode, threads=1, **key),  # noqa: B023
        )  # fmt: skip
    y = rng.standard_normal(1 << 18)
    yield _row(
        "CPFloat, float64 to binary16", y.size,
        lambda: cpfloat.quantize(y, "binary16"), lambda: sn.quantize(y, "binary16", threads=1),
    )  # fmt: skip
    codes = sn.encode(x, "binary16")
    halves = sn.decode(codes, "binary16", np.float32)
    for op in ("add", "multiply"):
        yield _row(
            f"CPFloat {op} binary16, carried by float32", x.size,
            lambda: cpfloat.operate(op, halves, halves, "binary16"),  # noqa: B023
            lambda: getattr(sn, op)(codes, codes, "binary16"),  # noqa: B023
        )  # fmt: skip


def _universal_rows(universal: Universal, rng) -> Iterator[Row]:
    x = rng.standard_normal(1 << 16, dtype=np.float32)
    for fmt in universal.formats:
        yield _row(
            f"Universal, float32 to {fmt}", x.size,
            lambda: universal.encode(x, fmt), lambda: sn.encode(x, fmt, threads=1),  # noqa: B023
        )  # fmt: skip
        a, b = sn.encode(x, fmt), sn.encode(x[::-1].copy(), fmt)
        yield _row(
            f"Universal, {fmt} to float32", x.size,
            lambda: universal.decode(a, fmt), lambda: sn.decode(a, fmt, np.float32, threads=1),  # noqa: B023
        )  # fmt: skip
        for op in ("add", "multiply"):
            yield _row(
                f"Universal {op} {fmt}", x.size,
                lambda: universal.operate(op, a, b, fmt), lambda: getattr(sn, op)(a, b, fmt),  # noqa: B023
            )  # fmt: skip


def _row(name: str, n: int, theirs, mine, unit: str = "ns") -> Row:
    peer, ours = against(theirs, mine, 5)
    speed = peer / n * 1e9 if unit == "ns" else n / peer / 1e9
    return Row(f"peer: {name}", speed, unit, peer / ours, "x softnum's time")


def _ml_dtypes_rows(ml_dtypes, rng) -> Iterator[Row]:
    x = rng.standard_normal(1 << 18, dtype=np.float32)
    for fmt in ("e5m2", "e4m3fn", "bfloat16"):
        dtype = getattr(ml_dtypes, ML_DTYPES[fmt])
        yield _row(
            f"ml_dtypes astype, float32 to {fmt}", x.size,
            lambda: x.astype(dtype), lambda: sn.encode(x, fmt, threads=1),  # noqa: B023
        )  # fmt: skip
        y = x.astype(dtype)
        codes = y.view(sn.format(fmt).storage_dtype)
        yield _row(
            f"ml_dtypes astype, {fmt} to float32", x.size,
            lambda: y.astype(np.float32), lambda: sn.decode(codes, fmt, np.float32, threads=1),  # noqa: B023
        )  # fmt: skip
        yield _row(f"ml_dtypes add {fmt}", x.size, lambda: y + y, lambda: sn.add(codes, codes, fmt))  # noqa: B023


def _apytypes_rows(apy, rng) -> Iterator[Row]:
    x = rng.standard_normal(1 << 16)
    a, mine = apy.APyFloatArray.from_float(x, 6, 9), sn.array(x, "e6m9")
    wide = apy.APyFloatArray.from_float(x, 11, 52)
    yield _row(
        "apytypes cast, e11m52 to e6m9", x.size, lambda: wide.cast(6, 9), lambda: sn.quantize(x, "e6m9", threads=1)
    )
    yield _row("apytypes add e6m9", x.size, lambda: a + a, lambda: mine + mine)
    yield _row("apytypes multiply e6m9", x.size, lambda: a * a, lambda: mine * mine)
    n = 128
    p, q = (apy.APyFloatArray.from_float(rng.standard_normal((n, n)), 5, 2) for _ in range(2))
    b, c = (v.to_numpy().astype(np.float32) for v in (p, q))
    unit = sn.MadUnit("e6m9", operand="e5m2", product="e6m9")
    with apy.APyFloatAccumulatorContext(exp_bits=6, man_bits=9):
        yield _row(
            f"apytypes {n}^3 product of e5m2 in e6m9, {apy.n_threads()} threads", n**3,
            lambda: p @ q, lambda: sn.matmul(b, c, unit, threads=1), "GMAC/s",
        )  # fmt: skip
