"""What a collective is stated by: its parameters, those that each algorithm has, and text of it."""

from __future__ import annotations

import difflib
from functools import partial
from numbers import Integral
from operator import index

from softnum.arrays.conversion import quantize
from softnum.arrays.sources import DEFAULT_SOURCE
from softnum.formats.base import AnyFormat
from softnum.formats.blocks import scale_rule_of
from softnum.formats.facts import fits
from softnum.formats.modes import overflow_name, rounding_name
from softnum.mac.expressions import evaluated
from softnum.mac.families import FAMILIES
from softnum.mac.family import family_of
from softnum.mac.mad import MadUnit, Unit
from softnum.mac.presets import unit_of
from softnum.mac.products.sums import addend_formats, adder_of

__all__ = [
    "COMMON",
    "MOST_RANKS",
    "OPTIONS",
    "check_name",
    "checked",
    "defaults_of",
    "from_text",
    "gloo_options",
    "unit_given",
]

MOST_RANKS = 16384
#: algorithm -> its own parameters and what they are by default
OPTIONS: dict[str, dict] = {
    "ring": {
        "channels": 1, "chunk": None, "align": 1, "segments": 1, "segment": None, "direction": 1, "start": 1,
        "order": None,
    },
    "tree": {"channels": 1, "chunk": None, "node": 1},
    "double_tree": {"channels": 2, "chunk": None, "node": 1},
    "halving_doubling": {"align": 1, "distance": "far"},
    "doubling": {"distance": "near"},
    "in_network": {},
    "one_shot": {"start": 0},
    "two_shot": {"chunk": None, "align": 1, "start": 0},
}  # fmt: skip
#: what every collective has besides, by default
COMMON = {
    "average": None, "own": "sent", "wire_rounding": "nearest_even", "wire_overflow": None, "scale_rule": None,
    "stochastic_bits": 32,
}  # fmt: skip
_OWN_OPTIONS = tuple(dict.fromkeys(name for options in OPTIONS.values() for name in options))
_AVERAGES = (None, "before", "after", "reciprocal_before", "reciprocal_after")
_ONCE = ("in_network", "one_shot", "two_shot")  # whose sums are of all ranks at once
_GLOO_SEGMENT = 1 << 20  # bytes: kMaxSegmentSize of gloo/allreduce.h


def defaults_of(name: str, ranks: int, unit: Unit, fmt: AnyFormat) -> dict:
    """All parameters as they are if nothing but these is stated."""
    operand = unit.operand[1]
    return {"name": name, "ranks": ranks, "unit": unit, "format": operand, "wire": fmt, **COMMON} | {
        option: OPTIONS[name].get(option) for option in _OWN_OPTIONS
    }


def unit_given(unit) -> Unit:
    """The adder: a unit, the name of one, its expression; of a format, the plain unit that adds its values."""
    if isinstance(unit, AnyFormat):
        return MadUnit(unit, operand=unit)
    if isinstance(unit, str) and "(" not in unit:
        try:
            return MadUnit(unit, operand=unit)
        except ValueError as error:
            try:
                return unit_of(unit)
            except ValueError:
                raise ValueError(
                    f"collective: unit={unit!r} is neither a format whose values are added ({error}) nor a unit "
                    "(softnum.units())"
                ) from None
    return unit_of(unit)


def order_given(order) -> tuple[int, ...]:
    """The ranks of a ring in their places, as plain integers."""
    try:
        return tuple(index(rank) for rank in order)
    except TypeError:
        raise TypeError(f"collective: order= is a sequence of ranks, got {order!r:.80}") from None


def gloo_options(fmt: AnyFormat) -> dict:
    """A ring as Gloo runs it for arrays of a format: downwards, chunks of two segments or more, 1 MiB at most."""
    return {"direction": -1, "segments": 2, "segment": max(1, _GLOO_SEGMENT // max(1, fmt.bits // 8))}


def from_text(text: str) -> dict:
    """The arguments of `softnum.collective` that a text states: a name alone, or with arguments in brackets.

    >>> from_text("ring(unit='bfloat16', direction=-1)")
    {'name': 'ring', 'unit': 'bfloat16', 'direction': -1}
    """
    if not isinstance(text, str):
        raise TypeError(f"collective: the name of an algorithm is a text, got {text!r:.80}")
    if "(" not in text:
        return {"name": text.strip()}
    kinds = {units.__name__: units for units, family in FAMILIES.items() if family.from_text}
    made = {name: partial(_stated, name) for name in (*OPTIONS, "gloo")} | {"collective": _stated}
    found = evaluated(text, kinds | made, "collective", "ring(unit='bfloat16', wire='bfloat16')")
    if not isinstance(found, dict):
        raise ValueError(f"no expression of a collective: {text!r}; one reads ring(unit='bfloat16', wire='bfloat16')")
    return found


def _stated(name, *others, **given) -> dict:
    """The arguments of a text's call, all of them by name."""
    if others:
        raise TypeError(f"its arguments are named, as in ring(ranks=4), got {others[0]!r}")
    return {"name": name, **given}


def check_name(name, given: dict) -> None:
    """ValueError if there is no such algorithm, TypeError if it has no such parameters."""
    if name not in OPTIONS:
        near = difflib.get_close_matches(str(name), OPTIONS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"collective: unknown algorithm {name!r}{hint} (known: {', '.join(OPTIONS)}, gloo)")
    for option, value in given.items():
        if option not in _OWN_OPTIONS:
            raise TypeError(f"collective: there is no parameter {option!r} (of {name}: {', '.join(OPTIONS[name])})")
        if option not in OPTIONS[name] and value is not None:
            takers = ", ".join(algorithm for algorithm, options in OPTIONS.items() if option in options)
            raise ValueError(f"collective: {name} has no {option}= (got {value!r}), which is for {takers}")


def _whole(what: str, value, low: int, high: int, hint: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or not low <= value <= high:
        raise ValueError(f"collective: {what} must be an integer from {low} to {high}, got {value!r}{hint}")


def _one_of(what: str, value, known) -> None:
    if value not in known:
        raise ValueError(f"collective: {what} must be one of {', '.join(map(repr, known))}, got {value!r}")


def checked(c) -> None:
    """ValueError or TypeError for parameters of a collective that do not go together."""
    check_name(c.name, {option: getattr(c, option) for option in _OWN_OPTIONS})
    _whole("ranks", c.ranks, 2, MOST_RANKS)
    _one_of("average", c.average, _AVERAGES)
    _one_of("own", c.own, ("sent", "kept"))
    _check_order(c)
    _check_unit(c)
    _check_wire(c)


def _check_order(c) -> None:
    for what, value, most in (
        ("channels", c.channels, 1024), ("chunk", c.chunk, 1 << 40), ("align", c.align, 1 << 20),
        ("segments", c.segments, 1 << 20), ("segment", c.segment, 1 << 40), ("node", c.node, MOST_RANKS),
    ):  # fmt: skip
        if value is not None:
            _whole(what, value, 1, most)
    if c.chunk is not None and c.name == "ring" and (c.segments, c.segment) != (1, None):
        raise ValueError(
            "collective: a ring has chunks of at most chunk= elements, in loops (NCCL), or of segments (Gloo: "
            "segments=, segment=), not both"
        )
    if c.name == "double_tree" and c.channels % 2:
        raise ValueError(f"collective: the channels of double_tree are shared by two trees; {c.channels} is odd")
    if c.direction is not None:
        _one_of("direction", c.direction, (1, -1))
    if c.distance is not None:
        _one_of("distance", c.distance, ("near", "far"))
    if c.start is not None and not (c.start == "own" and c.name in ("one_shot", "two_shot")):
        _whole("start", c.start, 0, c.ranks - 1, ", or 'own'" if c.name != "ring" else "")
    if c.node is not None and c.ranks % c.node:
        raise ValueError(
            f"collective: nodes of node={c.node} ranks do not divide {c.ranks} ranks; state a divisor, or node=1"
        )
    if c.order is not None and sorted(c.order) != list(range(c.ranks)):
        raise ValueError(
            f"collective: order= has each of the {c.ranks} ranks once, in the order of the ring, got "
            f"{len(c.order)} numbers, {tuple(c.order)[:8]}{'...' if len(c.order) > 8 else ''}"
        )


def _check_unit(c) -> None:
    unit, fmt = c.unit, c.format
    if family_of(unit).of_blocks:
        raise ValueError(f"collective: {type(unit).__name__} adds products of blocks; state a unit that adds values")
    result, taken = unit.result, addend_formats(unit)[0]
    adder = adder_of(unit, taken)
    for what, of in (("format", fmt), ("the unit's result", result), ("the unit's addends", taken)):
        if of.element is not of or not fits(of, "float64"):
            raise ValueError(f"collective: {what}, {of}, must be a scalar format whose values binary64 holds")
    if getattr(adder, "random", DEFAULT_SOURCE) != DEFAULT_SOURCE and adder.stochastic:
        raise ValueError(
            f"collective: random bits are those of streams of the key, and the unit states random={adder.random!r}; "
            "leave it out"
        )
    needed = taken if c.name in _ONCE else result
    if not needed.contains(fmt) and (c.name not in _ONCE or c.own == "kept"):
        raise ValueError(
            f"collective: what ranks put in has format {fmt}, of which {needed}, the format of the sum, lacks values; "
            f"state format={str(needed)!r} and round what is put in, or a unit with a wider accumulator"
        )
    if c.name not in _ONCE and not adder.c_format.contains(result):
        raise ValueError(f"collective: {c.name} adds to sums of {result}, but the unit's C has format {adder.c_format}")


def _check_wire(c) -> None:
    wire = c.wire
    _whole("stochastic_bits", c.stochastic_bits, 1, 32)
    blocks = wire.element is not wire
    if blocks and wire.tensor_scale is not None:
        raise ValueError(
            f"collective: wire={wire} has a scale of the whole array, which no message has; state a BlockFormat "
            f"without: softnum.BlockFormat({str(wire.element)!r}, {str(wire.scale)!r}, {wire.block_size})"
        )
    if c.scale_rule is not None:
        if not blocks:
            raise ValueError(f"collective: scale_rule={c.scale_rule!r} is for wires of a block format; {wire} is none")
        scale_rule_of(wire, c.scale_rule)
    if not fits(wire, "float64"):
        raise ValueError(f"collective: wire={wire} has values that binary64 lacks")
    rounding_name(c.wire_rounding)
    if blocks:
        quantize([0.0], wire, rounding=c.wire_rounding, overflow=c.wire_overflow, random_bits=[0])
    else:
        overflow_name(c.wire_overflow, wire)
