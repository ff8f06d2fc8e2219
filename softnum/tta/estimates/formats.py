"""Which of a device's arithmetic rates a format can use: the narrowest unit that holds its every finite value."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from softnum.formats.aliases import format_alias
from softnum.formats.blocks import format
from softnum.formats.dispatch import of_format

__all__ = ["PEAKS", "choose_peak"]

#: Names of the rates a device may list, the narrowest first, each with softnum's formats that it is the rate of.
PEAKS = {
    "fp4": ("e2m1fn",),
    "int8": ("q8.0",),
    "fp8": ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz"),
    "fp16": ("binary16",),
    "bf16": ("bfloat16",),
    "tf32": ("tf32",),
    "fp32": ("binary32",),
    "fp64": ("binary64",),
}
#: The rate of a design's own array, which is built for whatever the design computes in.
NATIVE = "native"


@dataclass(frozen=True)
class _Grid:
    """What a format needs of the one that is to hold it: significant bits, largest size, finest step."""

    precision: int
    largest: float
    step: float
    integer: bool = False  # fixed point of at most 8 bits

    def within(self, other: _Grid) -> bool:
        return self.precision <= other.precision and self.largest <= other.largest and self.step >= other.step


@cache
def _grid(name: str) -> _Grid | None:
    """Of a registered format; None of one that only its design file knows."""
    try:
        fmt = format(format_alias(name))
    except (ValueError, TypeError):
        return None
    return _grid_of(fmt.element)  # the scale is applied to sums, outside the multipliers


@of_format
def _grid_of(fmt) -> _Grid:
    step = fmt.smallest_subnormal if fmt.lowest_binade == "subnormal" else fmt.smallest_normal * fmt.epsilon
    return _Grid(fmt.precision, fmt.max, step)


@_grid_of.fixed
def _fixed_grid_of(fmt) -> _Grid:
    # the negative end of two's complement is a power of two, so one significant bit fewer than the width holds it
    return _Grid(fmt.bits - fmt.signed, fmt.max, fmt.epsilon, fmt.bits <= 8)


@_grid_of.custom
def _tapered_grid_of(fmt) -> _Grid:
    return _Grid(fmt.precision, fmt.max, 2.0 ** fmt.span[0])


def _has_scales(name: str) -> bool:
    fmt = format(format_alias(name))
    return fmt.element != fmt


def _is_own(peak: str, name: str) -> bool:
    # where the binary point lies is wiring: a product of 8-bit fixed point is the product of 8-bit integers
    return name in PEAKS[peak] or (peak == "int8" and _grid(name).integer)


def _holds(peak: str, name: str) -> bool:
    grid = _grid(name)
    if peak == "int8":
        return grid.integer
    return any(grid.within(_grid(own)) for own in PEAKS[peak])


@cache
def choose_peak(listed: tuple[str, ...], formats: tuple[str, ...]) -> tuple[str, bool, str]:
    """The rate at which products of operands in some formats run.

    Parameters
    ----------
    listed : tuple of str
        The rates of a device, keys of `PEAKS`, or "native".
    formats : tuple of str
        Names of the operands' formats; empty means unknown.

    Returns
    -------
    (str, bool, str)
        The rate's name; whether another format stands in for the operands' own; why.

    Raises
    ------
    ValueError
        If no listed rate is of a format that holds the operands.

    Examples
    --------
    >>> choose_peak(("fp32", "fp16"), ("binary16", "binary16"))
    ('fp16', False, '')
    >>> choose_peak(("fp32", "fp16"), ("e5m2",))
    ('fp16', True, 'no rate for e5m2; fp16 is the narrowest that holds it')
    """
    if NATIVE in listed:
        return NATIVE, False, ""
    names = tuple(dict.fromkeys(format_alias(name) for name in formats))
    ordered = [peak for peak in PEAKS if peak in listed]
    unknown = [name for name in names if _grid(name) is None]
    if unknown or not names:
        floats = [peak for peak in ("fp32", "fp64") if peak in listed]
        what = f"the format {', '.join(unknown)}" if unknown else "the operands' format"
        if not floats:
            raise ValueError(
                f"{what} is not known to softnum and the table lists neither fp32 nor fp64 to stand in "
                f"(listed: {', '.join(ordered)}); list a rate that it can be computed at"
            )
        return floats[0], True, f"{what} is not known to softnum; {floats[0]} stands in, as for emulation"
    exact = [peak for peak in ordered if all(_is_own(peak, name) for name in names)]
    if exact:
        return exact[0], False, ""
    holding = [peak for peak in ordered if all(_holds(peak, name) for name in names)]
    if not holding:
        raise ValueError(
            f"no listed rate ({', '.join(ordered)}) is of a format that holds every value of {', '.join(names)}; "
            "choose another device or table, or a design whose formats fit"
        )
    them = "it" if len(names) == 1 else "them"
    blocks = [name for name in names if _has_scales(name)]
    scales = f" (elements of {', '.join(blocks)}; scales are applied outside)" if blocks else ""
    return holding[0], True, f"no rate for {', '.join(names)}; {holding[0]} is the narrowest that holds {them}{scales}"
