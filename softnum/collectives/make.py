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
    """A collective operation of many ranks as arithmetic: who adds what, in which order, with which roundings.

    Parameters
    ----------
    name : str
        How an all-reduce is done; or the text of a whole collective, as its ``str`` or ``repr`` has it, or one itself,
        of which what is given besides replaces what it states, but for ranks.

        - "ring": a chunk goes round the ranks once, each adds its own; then it goes round as it is. NCCL, Gloo.
        - "tree": sums go up a binary tree to its root, the result goes down. NCCL's tree.
        - "double_tree": two such trees, half of the channels each. NCCL between nodes.
        - "halving_doubling": partners exchange halves of what they have, then halves of halves (Rabenseifner).
        - "doubling": partners exchange all that they have, at distances that double.
        - "in_network": a switch adds all ranks' values in the unit at once (NVLS, SHARP, as far as published).
        - "one_shot": each rank is sent everything and adds it all. "two_shot": each adds its part, and sends the sum.
        - "gloo": "ring" with the direction and segments of Gloo's.
    ranks : int
        2 to 16384.
    unit : Unit, str or format
        The adder. Of a format, or its name, the one that adds its values: ``MadUnit(f, operand=f)``. Default binary32.
        Where sums are made step by step, a step is ``R(own + arrived)``. In "in_network", "one_shot" and "two_shot" all
        terms meet in the unit at once: a MadUnit adds them in turn to the first one, others as `softnum.sum` does.
    format : format or str, optional
        Of the arrays that are given and returned. Default: the unit's second operand.
    wire : format or str, optional
        Of what is sent. Default `format`. A block format has a scale for each block of a chunk, as FP8 is sent. What
        arrives is rounded to what the adder takes, to nearest even, where that lacks it.
    average : {None, "before", "after", "reciprocal_before", "reciprocal_after"}
        None: sums. Divided by the number of ranks, with one rounding to nearest even: what is put in, or the sums; or
        multiplied by the reciprocal, which is rounded before: "reciprocal_before" is NCCL's AVG of floats.
    own : {"sent", "kept"}
        What a rank that sends something to all others has itself: what they have, or what it had before the wire.
    wire_rounding, wire_overflow, scale_rule, stochastic_bits : optional
        As in `softnum.quantize`, of the rounding before a wire.
    channels : int
        Of ring and trees: equal parts of an array that go their own ways. Of double_tree the first half of them takes
        the first tree.
    chunk : int, optional
        The most elements of a chunk. A ring goes over `ranks` chunks in a loop, the last of which has equal ones.
    align : int
        The chunks of the last loop have a multiple of it.
    segments, segment : int, optional
        Of a ring without chunk: a chunk has so many segments at least, of so many elements at most.
    direction : {1, -1}
        Of a ring: to the next rank, or to the one before.
    start : int or "own"
        Chunk i of a ring starts from the rank so many places further in its direction; by default 1, so that it ends
        at place i. Of one_shot and two_shot: the rank that is added first, the others follow by number; "own": the
        adding rank itself.
    order : sequence of int, optional
        The ranks of a ring in their places.
    node : int
        Of trees: so many neighbouring ranks are a chain, whose first is the node of the tree.
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
        If a parameter is out of range, is not the algorithm's, or the formats do not go together.

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
