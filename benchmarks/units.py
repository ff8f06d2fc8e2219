"""Matrix products under the units of real hardware against NumPy's sgemm, on one thread."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import numpy as np

import softnum as sn
from benchmarks.measure import Row, against, best
from softnum.mac.presets import DISPUTED
from softnum.runtime import _core

_LIMIT = 15.0  # sgemms
_LIMITS = {"nvidia_v100_fp16": 10.0}
_NARROWER = 3.0  # AVX2 against AVX-512


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


def rows(n: int) -> Iterator[Row]:
    """GEMM n^3 on one thread against sgemm: every preset, equal units once; values that subnormals are among; a unit
    by its definition; and the widest instruction set against AVX2."""
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
    unit = sn.unit("x86_avx512_bf16")
    a, b = _operands(unit, n)
    counted = lambda: sn.matmul(a[:16], b, unit, threads=1, return_stats=True)  # noqa: E731  which it alone counts
    mine = best(counted, 1) * n / 16
    yield Row(f"GEMM {n}^3, x86_avx512_bf16, by definition", n**3 / mine / 1e9, "GMAC/s", mine / alone, "sgemms")
