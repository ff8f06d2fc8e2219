"""`scalar`: a format's arithmetic, which Numba knows from then on if it is installed."""

from __future__ import annotations

from importlib.util import find_spec

from softnum.arrays.environment import environment
from softnum.formats.dispatch import of_format
from softnum.formats.facts import fits
from softnum.formats.modes import rounding_name
from softnum.formats.names import format
from softnum.kernels.host.scalars import CARRIERS, CustomScalar, Scalar

__all__ = ["scalar"]


def scalar(fmt, *, rounding="nearest_even", overflow=None, stochastic_bits=32, carrier=None) -> Scalar:
    """A format's arithmetic on single numbers, to be called in functions of your own: `softnum.CustomMadUnit`.

    Parameters
    ----------
    fmt : format or str
        A float or fixed-point format, or a CustomFormat: its own operations, on codes, in compiled code those of two
        operands in formats of up to 8 bits.
    rounding, overflow, stochastic_bits
        As in `softnum.quantize`.
    carrier : {"float32", "float64", "codes"}, optional
        What operands and results are: floats, or codes of the format as integers. Default: float32 if that holds every
        value of the format, else float64, else codes.

    Returns
    -------
    Scalar
        ``.round .add .subtract .multiply .divide .fma .sqrt``, callable in Python and in Numba's compiled code.

    Raises
    ------
    ValueError
        If the carrier does not hold the format, or a name or number is out of range.

    Notes
    -----
    Compiled code takes arguments of the carrier's type only (codes: int64). In Numba a constant such as 0.5 is a
    float64: write ``np.float32(0.5)``.

    Examples
    --------
    >>> from softnum import kernels
    >>> e5m2, e6m9 = kernels.scalar("e5m2"), kernels.scalar("e6m9")
    >>> e5m2.multiply(1.25, 1.25), e6m9.fma(1.25, 1.25, 1024), e6m9.round(1 + 2**-8)
    (np.float32(1.5), np.float32(1026.0), np.float32(1.0039062))
    """
    fmt = format(fmt)
    made = _made(fmt, rounding, overflow, stochastic_bits, carrier)
    if find_spec("numba") is not None:
        from softnum.kernels.host import jit  # noqa: F401  tells Numba what a Scalar is
    return made


def _check_bits(fmt) -> None:
    if fmt.bits > 63:
        raise ValueError(
            f"scalar: codes are signed 64-bit integers in compiled code; {fmt} has {fmt.bits} bits, limit 63"
        )


@of_format
def _made(fmt, rounding, overflow, stochastic_bits, carrier) -> Scalar:
    if carrier is None:
        carrier = next((c for c in CARRIERS[:2] if fits(fmt, c)), "codes")
    if carrier not in CARRIERS:
        raise ValueError(f"scalar: carrier must be one of {', '.join(CARRIERS)}, got {carrier!r}")
    if carrier != "codes" and not fits(fmt, carrier):
        raise ValueError(f"scalar: {carrier} does not hold every value of {fmt}; take a wider carrier, or 'codes'")
    if carrier == "codes":
        _check_bits(fmt)
    mode = rounding_name(rounding)
    env = environment(fmt, mode, overflow, stochastic_bits)  # checks
    return Scalar(fmt, mode, overflow, int(env[3]), carrier)  # r of a mode that is not stochastic is always 32


@_made.custom
def _made_on_codes(fmt, rounding, overflow, stochastic_bits, carrier) -> CustomScalar:
    fmt.check_modes(rounding, overflow)
    if carrier not in (None, "codes"):
        raise ValueError(f"scalar: the arithmetic of {fmt} is on codes; carrier={carrier!r} is not for it")
    _check_bits(fmt)
    mode = rounding_name(rounding)
    env = environment(format("binary32"), mode, None, stochastic_bits)  # checks
    return CustomScalar(fmt, mode, overflow, int(env[3]), "codes")
