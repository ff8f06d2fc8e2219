"""`softnum.collective`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softnum.collectives.collective import Collective
from softnum.collectives.statement import (
    COMMON,
    check_name,
    defaults_of,
    from_text,
    gloo_options,
    order_given,
    unit_given,
)
from softnum.formats.annotations import FormatLike
from softnum.formats.blocks import format as format_of
from softnum.formats.modes import rounding_name

if TYPE_CHECKING:
    from softnum.mac.mad import Unit

__all__ = ["collective"]


def collective(
    name: str,
    ranks: int | None = None,
    *,
    unit: Unit | None = None,
    format: FormatLike | None = None,
    wire: FormatLike | None = None,
    **given: Any,
) -> Collective:
    """The arithmetic of a collective operation: which rank adds what, in which order and with which roundings.

    Parameters
    ----------
    name : str
        The algorithm of the all-reduce. Or a Collective, or the text of one (its ``str`` or ``repr``): other arguments
        then replace its parameters, except ranks.

        - "ring": each chunk travels round the ring once, every rank adding its part, and its sum travels round again.
          NCCL, Gloo.
        - "tree": sums move up a binary tree to the root and the result moves down. NCCL's tree.
        - "double_tree": two such trees, each with half of the channels. NCCL between nodes.
        - "halving_doubling": partners exchange halves of their data, then halves of those halves (Rabenseifner).
        - "doubling": partners at doubling distances exchange all of their data.
        - "in_network": a switch adds the values of all ranks in one operation of the unit (NVLS, SHARP, as far as
          published).
        - "one_shot": each rank receives all data and adds it. "two_shot": each rank adds its part and sends the sum.
        - "gloo": "ring" with the direction and segments of Gloo.
    ranks : int
        2 to 16384.
    unit : Unit, str or format
        The adder. A format, or its name, stands for ``MadUnit(f, operand=f)``. Default binary32.
        Where sums are made step by step, a step is ``R(own + arrived)``. In "in_network", "one_shot" and "two_shot" all
        terms meet in the unit at once: a MadUnit adds them in turn to the first one, others as `softnum.sum` does.
    format : format or str, optional
        The format of the input and output arrays. Default: the unit's second operand.
    wire : format or str, optional
        The format of messages. Default `format`. A block format sends a scale for each block of a chunk, as for FP8.
        Received values that are not in the adder's operand format are rounded to it, to nearest even.
    average : {None, "before", "after", "reciprocal_before", "reciprocal_after"}
        None: sums. "before", "after": the inputs, or the sums, are divided by the number of ranks with one rounding to
        nearest even. With a reciprocal they are multiplied by it, rounded, instead; "reciprocal_before" is
        NCCL's AVG of floats.
    own : {"sent", "kept"}
        What a rank keeps of a value that it sends to all others: the value as sent, or the one before it was rounded to
        the wire format.
    wire_rounding, wire_overflow, scale_rule, stochastic_bits : optional
        As in `softnum.quantize`, for the rounding to the wire format.
    channels : int
        For ring and trees: the number of equal parts of an array that are reduced independently. In double_tree the
        first half of the parts uses the first tree.
    chunk : int, optional
        The largest number of elements in a chunk. A ring processes `ranks` chunks per loop; those of the last loop are
        equal.
    align : int
        The length of chunks in the last loop is a multiple of this.
    segments, segment : int, optional
        For a ring without `chunk`: the least number of segments of a chunk, and the largest number of elements in a
        segment.
    direction : {1, -1}
        For a ring: send to the next rank, or to the previous one.
    start : int or "own"
        Chunk i of a ring starts from the rank so many places further in its direction; by default 1, so that it ends
        at place i. Of one_shot and two_shot: the rank that is added first, the others follow by number; "own": the
        adding rank itself.
    order : sequence of int, optional
        The ranks in the order of the ring.
    node : int
        For trees: this many neighbouring ranks form a chain, whose first rank is a node of the tree.
    distance : {"far", "near"}
        The distance of partners in the first step: half of the ranks, or one. Default "far" of halving_doubling, "near"
        of doubling.

    Returns
    -------
    Collective
        ``all_reduce``, ``reduce_scatter``, ``all_gather``, ``all_to_all``, ``estimate``.

    Raises
    ------
    ValueError
        If a parameter is out of range or not one of the algorithm, or the formats are incompatible.

    Notes
    -----
    Halving and doubling of a number of ranks that is no power of two: of the first ranks, as many pairs as there are
    too many, the even ones send theirs to the odd ones before and get the result after (MPICH's way). Sources are in
    the documentation, "Collectives". Random words: rounding t of element i takes word i of an elementwise operation
    under ``Stream(key).spawn(2)[0].jumped(t)`` in sums, of child 1 before the wire; the documentation has t.

    Examples
    --------
    >>> import numpy as np, softnum as sn
    >>> x = np.float32([[256], [1], [1], [1]])
    >>> sn.collective("ring", ranks=4, unit="bfloat16", start=0).all_reduce(x)[0]  # 256 + 1 rounds back, three times
    array([256.], dtype=float32)
    >>> sn.collective("ring", ranks=4, unit="bfloat16").all_reduce(x)[0]  # ((1 + 1) + 1) + 256
    array([260.], dtype=float32)
    >>> sn.collective("gloo", ranks=4, unit="bfloat16")
    collective('ring', ranks=4, unit=MadUnit('bfloat16', operand='bfloat16'), segments=2, segment=524288, direction=-1)
    """
    if isinstance(name, Collective):
        stated, name = {"ranks": name.ranks, "unit": name.unit} | name.stated(), name.name
    else:
        stated = from_text(name)
        name = stated.pop("name")
    if ranks is not None and stated.setdefault("ranks", ranks) != ranks:
        raise ValueError(f"collective: the text states ranks={stated['ranks']!r}, and ranks={ranks!r} is given")
    given = stated | given
    ranks = given.pop("ranks", None)
    if ranks is None:
        raise ValueError("collective: state ranks=, how many there are (2 to 16384)")
    stated = [given.pop(what, None) for what in ("unit", "format", "wire")]
    unit, fmt, to = (at if own is None else own for own, at in zip((unit, format, wire), stated, strict=True))
    unit = unit_given("binary32" if unit is None else unit)
    fmt = unit.operand[1] if fmt is None else format_of(fmt)
    if name == "gloo":
        name, given = "ring", gloo_options(fmt) | given
    common = {what: given.pop(what) for what in COMMON if what in given}
    if "wire_rounding" in common:
        common["wire_rounding"] = rounding_name(common["wire_rounding"])
    check_name(name, given)
    plain = defaults_of(name, ranks, unit, fmt) | {"format": fmt, "wire": fmt if to is None else format_of(to)}
    if given.get("order") is not None:
        given["order"] = order_given(given["order"])
    return Collective(**plain | common | given)
