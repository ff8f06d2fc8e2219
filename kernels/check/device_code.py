"""The kernels of a unit as machine code of a named chip, checked without a GPU."""

from __future__ import annotations

from collections.abc import Iterator

from softnum.formats.base import AnyFormat
from softnum.formats.dispatch import of_format
from softnum.mac.mad import Unit

__all__ = ["check_device_code", "kernels_of"]


def _refuse(unit):
    raise TypeError(f"check_device_code: it must be a unit, a format or the name of a preset, got {unit!r}")


@of_format
def _conversions(fmt) -> Iterator[tuple]:
    from softnum.kernels.device.elementwise import conversion

    for rounding in ("nearest_even", "stochastic"):
        yield from conversion.kernels_of(fmt, rounding=rounding)


_conversions.custom(_refuse), _conversions.block(_refuse)


def kernels_of(unit) -> Iterator[tuple]:
    """(name, kernel, types of its arguments[, whether it promises to be fast]) of what runs for a unit or a format."""
    if isinstance(unit, AnyFormat):
        yield from _conversions(unit)
    elif not isinstance(unit, Unit):
        _refuse(unit)
    else:
        from softnum.kernels.device.elementwise.conversion import FROM_KEY, NO_WORDS
        from softnum.kernels.device.products.gemm import engine_of

        words = FROM_KEY if getattr(unit, "stochastic", False) else NO_WORDS
        yield from engine_of(unit, words).kernels_of(unit)


def check_device_code(unit, chips=("sm_75", "sm_80", "sm_90", "sm_100", "sm_120")) -> list:
    """Compile the kernels that `softnum.matmul` runs for a unit, and say what they are on each chip; no GPU is needed.

    A GPU's compiler makes one operation of a multiplication and an addition, which then round once: ``x * y + z`` in a
    multiply-add unit of your own is another function there than on the CPU, and Numba's simulator cannot show it.
    This can. The functions of `softnum.kernels.scalar` are safe.

    Parameters
    ----------
    unit : unit, format or str
        Any unit that CUDA arrays take, `softnum.CustomMadUnit` included, or the name of a preset (`softnum.units`). For
        a format, the kernels are those of `softnum.quantize`, nearest and stochastic.
    chips : iterable of str
        "sm_75", "sm_80", "sm_90", "sm_100", "sm_120" or another that the installed compilers know.

    Returns
    -------
    list of DeviceCode
        One for each kernel and chip: registers, local and shared memory, spills, calls that are left, contracted
        multiplications, approximate operations and, where ``nvidia-cuda-nvdisasm`` is installed, the instructions of
        the inner loops. ``problems`` lists what would make its bits differ from the CPU's, or might.

    Raises
    ------
    RuntimeError
        If compilers are missing (``pip install 'softnum[cuda]'``), or Numba runs its simulator.
    TypeError
        If no kernel computes the unit.
    ValueError
        If a chip or the name of a preset is unknown.

    Notes
    -----
    ``python -m softnum.kernels.check NAME`` prints the same for a preset or for ``module:unit``.

    Examples
    --------
    >>> import softnum as sn, softnum.kernels
    >>> def report():
    ...     for code in softnum.kernels.check_device_code(sn.MadUnit("e6m9", operand="e5m2"), chips=["sm_90"]):
    ...         print(code, code.problems)
    """
    from softnum.kernels.check import link
    from softnum.mac.presets import unit as preset

    if missing := link.missing_library():
        raise RuntimeError(f"check_device_code: {missing}")
    if isinstance(unit, str):
        unit = preset(unit)
    chips = [chips] if isinstance(chips, str) else list(chips)
    return [link.examine(name, kernel, types, chip) for name, kernel, types, *_ in kernels_of(unit) for chip in chips]
