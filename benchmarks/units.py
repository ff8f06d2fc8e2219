"""Matrix products under the units of real hardware against NumPy's sgemm, on one thread."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import softnum as sn
from benchmarks.measure import Row, against, best
from softnum.runtime import _core

#: Goals, in sgemms.
LIMITS = {"nvidia_v100_fp16": 10.0, "nvidia_a100_fp16": 15.0, "nvidia_h100_fp16": 15.0, "nvidia_h100_e4m3": 15.0,
          "ocp_mxfp8_e4m3": 15.0, "ocp_mxfp4_e2m1": 15.0, "nvfp4": 15.0, "nvidia_tcgen05_mxf8f6f4": 15.0,
          "nvidia_tcgen05_mxf4": 15.0, "nvidia_tcgen05_mxf4nvf4": 15.0}  # fmt: skip
UNITS = [
    *((name, None) for name in LIMITS),
    ("ocp_mxfp8_e5m2", None),
    ("ocp_mxint8", None),
    ("nvidia_v100_fp16", "binary16"),
    ("nvidia_h100_fp16", "binary16"),
    ("nvidia_a100_bf16", None),
    ("nvidia_h100_tf32", None),
    ("nvidia_b200_e4m3", None),
    ("nvidia_h100_e4m3_mma", None),
    ("riscv_rvbna_bf16_vlen128", None),
    ("riscv_rvbna_bf16_vlen512", None),
    ("riscv_rvbna_e4m3_vlen128", None),
    ("x86_vnni_int8", None),
    ("nvidia_int8_satfinite", None),
    ("ibm_fp8_2018", None),
]
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


def rows(n: int) -> Iterator[Row]:
    """GEMM n^3 on one thread against sgemm; and the widest instruction set against AVX2."""
    rng = np.random.Generator(np.random.Philox(2))
    plain = [rng.standard_normal((n, n), dtype=np.float32) for _ in range(2)]
    sgemm = best(lambda: plain[0] @ plain[1])
    yield Row(f"numpy sgemm {n}^3", n**3 / sgemm / 1e9, "GMAC/s", 1.0, "sgemms")
    for name, output in UNITS:
        unit = sn.unit(name, output)
        a, b = _operands(unit, n)
        mine, theirs = against(
            lambda: sn.matmul(a, b, unit, threads=1),  # noqa: B023
            lambda: plain[0] @ plain[1],
            5,
        )
        title = f"GEMM {n}^3, {name}" + (f" to {output}" if output else "")
        limit = None if output else LIMITS.get(name)
        yield Row(title, n**3 / mine / 1e9, "GMAC/s", mine / theirs, "sgemms", limit)
    yield _by_table(n, sgemm)
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
    a, b = (x[:16] if i == 0 else x for i, x in enumerate(_operands(unit, n)))
    mine = best(lambda: sn.matmul(a, b, unit, threads=1), 1) * n / len(a)
    yield Row(f"GEMM {n}^3, x86_avx512_bf16, by definition", n**3 / mine / 1e9, "GMAC/s", mine / sgemm, "sgemms")
