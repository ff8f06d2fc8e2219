"""Matrix products under the units of real hardware against NumPy's sgemm, on one thread."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import numpy as np

import softnum as sn
from benchmarks.measure import Row, against, best
from softnum.mac.presets import DISPUTED
from softnum.mac.products.engines import counting_of
from softnum.runtime import _core

_LIMIT = 15.0  # sgemms
_LIMITS = {"nvidia_v100_fp16": 10.0}
_NARROWER = 3.0  # AVX2 against AVX-512

#: Units without a path of their own, by the definition in lanes: one rounding a step, two, and a compensation's; how
#: many sgemms each may take, and half as many again where its roundings are counted.
_ANY = {
    "binary32 toward zero": (sn.MadUnit("binary32", operand="binary32", rounding="toward_zero"), 60.0),
    "binary16 x e4m3 into e8m26, up, 4 lanes": (
        sn.MadUnit("e8m26", operand=("binary16", "e4m3"), rounding="up", lanes=4), 60.0,
    ),
    "e5m2 into e5m10, subnormals flushed": (
        sn.MadUnit("e5m10", operand="e5m2", flush_inputs=True, flush_results="after"), 60.0,
    ),
    "binary32 products and sums, ties away": (
        sn.MadUnit("binary32", operand="binary32", product="binary32", rounding="nearest_away"), 120.0,
    ),
    "q4.4 products into q8.8, 2 lanes": (sn.MadUnit("q8.8", operand="q4.4", product="q4.4", lanes=2), 120.0),
    "Kahan, binary32": (sn.MadUnit("binary32", operand="binary32", compensated="kahan"), 250.0),
    "Kahan, binary64": (sn.MadUnit("binary64", operand="binary64", compensated="kahan"), 250.0),
    "Kahan, e8m30, to odd": (sn.MadUnit("e8m30", operand="binary32", rounding="to_odd", compensated="kahan"), 250.0),
}  # fmt: skip


def _operands(unit, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.Generator(np.random.Philox(3))
    if isinstance(unit.operand[0], sn.BlockFormat):
        return tuple(
            sn.array(rng.standard_normal((n, n), dtype=np.float32), f, axis=axis)
            for f, axis in zip(unit.operand, (-1, -2), strict=True)
        )
    scale = 40 if unit.operand[0].kind == "fixed" else 1
    return tuple(
        sn.quantize(np.abs(x) if f.kind == "fixed" else x, f)
        for x, f in ((rng.standard_normal((n, n), dtype=np.float32) * scale, f) for f in unit.operand)
    )


def _by_table(n: int, sgemm: float) -> Row:
    """A unit that computes in an 8-bit format of the user's own: one made of the values of e4m3fn."""
    values = np.unique(sn.decode(np.arange(256), "e4m3fn"))
    values = values[np.isfinite(values)].tolist()
    fmt = sn.CustomFormat.from_table([*values, *(512.0 + 64 * i for i in range(256 - len(values)))], name="own8")
    unit = sn.MadUnit(fmt, operand=fmt, product=fmt)
    a, b = _operands(unit, n)
    mine = best(lambda: sn.matmul(a, b, unit, threads=1), 5)
    return Row(f"GEMM {n}^3, an 8-bit format of one's own", n**3 / mine / 1e9, "GMAC/s", mine / sgemm, "sgemms")


def presets() -> Iterator[tuple[str, sn.Unit, float | None]]:
    """(title, unit, limit) of each preset: of both outputs, and by each choice of what sources disagree on."""
    for name in sn.units():
        own = sn.unit(name)
        for output, disputed in itertools.product((None, "binary32", "binary16"), (None, *DISPUTED)):
            try:
                unit = sn.unit(name, output, disputed=disputed)
            except ValueError:  # it has no such output, or nothing of it is disputed
                continue
            if output is None or unit.result != own.result:
                title = name + (f" to {output}" if output else "") + (f", {disputed}" if disputed else "")
                yield title, unit, _LIMITS.get(title, _LIMIT)


def _ratio(unit, a, b, sgemm, repeats: int = 5) -> tuple[float, float]:
    """Seconds of a product under a unit, and how many products by sgemm take as long."""
    mine, theirs = against(lambda: sn.matmul(a, b, unit, threads=1), sgemm, repeats, time.process_time)
    return mine, mine / theirs


def _any_unit(n: int, sgemm) -> Iterator[Row]:
    """Units without a path of their own, and the same counted; of a unit with one, what it counts."""
    units = {**_ANY, "x86_avx512_bf16": (sn.unit("x86_avx512_bf16"), 60.0)}
    for title, (unit, limit) in units.items():
        a, b = _operands(unit, n)
        if title in _ANY:
            mine, ratio = _ratio(unit, a, b, sgemm)
            yield Row(f"GEMM {n}^3, {title}", n**3 / mine / 1e9, "GMAC/s", ratio, "sgemms", limit)
        counted = lambda: sn.matmul(a, b, unit, threads=1, return_stats=True)  # noqa: B023, E731
        if counting_of(unit) is not None:
            mine, theirs = against(counted, sgemm, 5, time.process_time)
            name = f"GEMM {n}^3, {title}, counted"
            yield Row(name, n**3 / mine / 1e9, "GMAC/s", mine / theirs, "sgemms", 1.5 * limit)


def rows(n: int) -> Iterator[Row]:
    """GEMM n^3 on one thread against sgemm: every preset, equal units once; values that subnormals are among; units
    without a path of their own; and the widest instruction set against AVX2."""
    rng = np.random.Generator(np.random.Philox(2))
    plain = [rng.standard_normal((n, n), dtype=np.float32) for _ in range(2)]
    sgemm = lambda: plain[0] @ plain[1]  # noqa: E731
    alone = best(sgemm)
    yield Row(f"numpy sgemm {n}^3", n**3 / alone / 1e9, "GMAC/s", 1.0, "sgemms")
    measured = {}
    for title, unit, limit in presets():
        if unit not in measured:
            measured[unit] = _ratio(unit, *_operands(unit, n), sgemm)
        mine, ratio = measured[unit]
        yield Row(f"GEMM {n}^3, {title}", n**3 / mine / 1e9, "GMAC/s", ratio, "sgemms", limit)
    for name in ("amd_cdna2_bf16_1k", "x86_avx512_bf16"):
        unit = sn.unit(name)
        small = [x * 2.0**e for x, e in zip(_operands(unit, n), (-60, -66), strict=True)]
        mine, ratio = _ratio(unit, *map(sn.quantize, small, unit.operand), sgemm, 2)
        yield Row(f"GEMM {n}^3, {name}, sums around 2^-126", n**3 / mine / 1e9, "GMAC/s", ratio, "sgemms")
    yield _by_table(n, alone)
    if _core.current_isa() == "avx512":
        unit = sn.unit("nvidia_v100_fp16")
        a, b = _operands(unit, n)

        def on(isa):
            _core.use_isa(isa)
            try:
                sn.matmul(a, b, unit, threads=1)
            finally:
                _core.use_isa("avx512")

        narrow, wide = against(lambda: on("avx2"), lambda: on("avx512"), 5)
        yield Row(
            f"GEMM {n}^3, nvidia_v100_fp16, AVX2", n**3 / narrow / 1e9, "GMAC/s", narrow / wide, "AVX-512s", _NARROWER
        )
    yield from _any_unit(n, sgemm)
