"""Units of real hardware, by name: the names that there are, and the unit of one.

Without a step-by-step source there is no preset: TPUs, for one, have none, as how they round and in which order they
add is not published in enough detail. The machines, and the sources, are in `softnum.mac.machines`.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from softnum.formats.annotations import FormatLike
from softnum.formats.names import format
from softnum.mac.expressions import evaluated
from softnum.mac.families import FAMILIES
from softnum.mac.machines import amd, arm, block_scaled, nvidia, riscv, standards, x86
from softnum.mac.machines.preset import DISPUTED, KINDS, Evidence
from softnum.mac.mad import Unit, unit_of_disclosure

__all__ = ["DISPUTED", "KINDS", "Evidence", "unit", "unit_of", "units"]

_PRESETS = {
    **nvidia.TENSOR_CORES, **block_scaled.PRESETS, **amd.PRESETS, **x86.PRESETS, **standards.PAPERS, **nvidia.INTEGERS,
    **riscv.PRESETS, **arm.PRESETS, **standards.BLOCK_FORMATS,
}  # fmt: skip


def units() -> tuple[str, ...]:
    """The names of the presets, the arguments of `unit`.

    Examples
    --------
    >>> import softnum as sn
    >>> [name for name in sn.units() if "a100" in name]
    ['nvidia_a100_fp16', 'nvidia_a100_bf16', 'nvidia_a100_tf32']
    """
    return tuple(_PRESETS)


@lru_cache(maxsize=256)
def _made(name: str, output: str | None, disputed: str | None) -> Unit:
    made, evidence = _PRESETS[name].made(name, output, disputed)
    # no fields: units that compute the same are equal, whatever that rests on
    vars(made).update(evidence=evidence, preset=(name, output, disputed))
    return made


def unit(
    name: Unit | str | Mapping[str, Any], output: FormatLike | None = None, *, disputed: str | None = None
) -> Unit:
    """The unit of a named piece of real hardware (a preset), or of a disclosure.

    Parameters
    ----------
    name : str, dict or path-like
        One of `units`; or a disclosure (``unit.disclosure()``): the text of its JSON, its data, or a path (of
        pathlib, not a str) to a file of it. ``nvidia_GPU_OPERAND``: tensor cores; FP8 on H100 and H200 is WGMMA there,
        and ``..._mma`` the other instruction, into binary16 unless told; ``nvidia_tcgen05_OPERAND``: a B200's
        instructions of that name, ``mxf8f6f4``, ``mxf4`` and ``mxf4nvf4`` those of blocks with scales (a
        `BlockFusedDotUnit`; other operands than the one shown: ``dataclasses.replace(unit, operand=...)``).
        ``nvidia_int8``, ``nvidia_uint4_satfinite`` and so on, ``nvidia_b1_and``, ``nvidia_fp64``: mma, of every GPU
        that has it. ``riscv_rvbna_OPERAND_vlenN``: RISC-V's widening dot products of vector registers of N bits.
        ``amd_cdnaN_OPERAND``: AMD's matrix cores, ``bf16_1k`` the instructions of that name, ``fp8`` e4m3fnuz, ``bf8``
        e5m2fnuz (the pairs of both: ``dataclasses.replace`` too). ``x86_avx512_bf16``: VDPBF16PS.
        ``arm_bfdot``: Arm's BFDOT and BFMMLA, ``arm_bfdot_ebf`` with FPCR.EBF = 1; ``arm_fdot_fp16``, and of FP8
        ``arm_fdot_OPERAND``, ``arm_fmlal_OPERAND`` (FMLAL, FMLALL) and ``arm_fmmla_OPERAND``.
        ``x86_amx_OPERAND``: TDPBF16PS, TDPFP16PS, TDPBSSD. ``x86_vnni_int8``: VPDPBUSD, a unsigned, b signed.
        ``ibm_fp8_2018``: Wang et al. 2018.
        ``int8_int32``: signed bytes into 32 bits that wrap around. ``ocp_mx...``, ``nvfp4``: block formats, as far as
        their sources go (a `BlockDotUnit`).
    output : {"binary32", "binary16"}, optional
        The other output of a tensor core or an instruction, where it has one: then C is of that format too.
    disputed : {"mma-sim", "matlab"}, optional
        Which source to follow if sources disagree and no hardware has been measured: MMA-Sim for a tensor core,
        MATLAB-tensor-core for CDNA1. By default the better supported one; ``evidence`` calls it "published, disputed"
        and says why.

    Returns
    -------
    Unit
        With ``evidence``, a dict: for each property what it rests on (`Evidence`). C is the instruction's own. Of a
        disclosure, the unit that was disclosed, with its evidence.

    Raises
    ------
    ValueError
        If the unit is unknown, does not have this output, or nothing about it is disputed. If a disclosure contradicts
        itself: a fact of a format by its others or its name, order, rounding or inputs by the parameters, a vector by
        the unit. (Its words are for people and not read.)

    Examples
    --------
    >>> import softnum as sn
    >>> v100 = sn.unit("nvidia_v100_fp16")
    >>> v100.terms, v100.fraction_bits, v100.evidence["fraction_bits"].kind
    (4, 23, 'recorded')
    >>> print(sn.unit("nvidia_v100_fp16", output="binary16"))
    acc = nearest_even(acc + a0*b0 + ... + a3*b3): binary16 x binary16 -> binary16, exact products and acc cut to 23
    fraction bits below the largest exponent (at least -19), then added, overflow always_infinity
    """
    if isinstance(name, (Mapping, os.PathLike)) or (isinstance(name, str) and name.lstrip().startswith("{")):
        if output is not None or disputed is not None:
            raise ValueError("a disclosure states exactly one unit; leave out output= and disputed=")
        return unit_of_disclosure(name)
    if name not in units():
        near = difflib.get_close_matches(str(name), units(), n=1, cutoff=0.5) or [
            known for known in units() if str(name).lower() in known
        ]
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"unknown unit {name!r}{hint} (known: softnum.units(), or `softnum units`)")
    if disputed not in (None, *DISPUTED):
        raise ValueError(f"disputed is None or {' or '.join(map(repr, DISPUTED))}, got {disputed!r}")
    return _made(name, None if output is None else str(format(output)), disputed)


_KINDS = {units.__name__: units for units, family in FAMILIES.items() if family.from_text}


def unit_of(what: Any) -> Unit:
    """A unit, given itself, by a preset's name, or by the expression that its `repr` shows.

    Raises ValueError for text that is neither.

    >>> from softnum.mac.presets import unit_of
    >>> unit_of("MadUnit('e6m9', operand='e5m2', chunk=64)").chunk
    64
    """
    if isinstance(what, Unit):
        return what
    if not isinstance(what, str):
        raise TypeError(f"expected a unit, the name of one or its expression, got {what!r}")
    if "(" not in what or what.lstrip().startswith("{"):
        return unit(what)
    return evaluated(what, _KINDS, "unit", "MadUnit('e6m9', operand='e5m2')")
