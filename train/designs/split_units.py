"""Units of kind "split" in designs: a K that ranks share, and the collective that adds their products."""

from __future__ import annotations

from softnum.collectives.make import collective
from softnum.collectives.split_unit import SplitDotUnit
from softnum.mac.family import family_of

__all__ = ["SPLIT", "check_divisions", "check_whole", "split_facts"]

#: the kind of a unit that ranks share
SPLIT = "split"


def split_facts(entry: dict) -> dict:
    """The collective and the sections of a unit's entry; errors begin with the key.

    Parameters
    ----------
    entry : dict
        Of a design: ``collective``, text as `softnum.collective` takes it, with ranks or beside ``ranks``; and
        ``sections``, where they are stated.

    Raises
    ------
    ValueError
        If the text is none of a collective.

    Examples
    --------
    >>> facts = split_facts({"collective": "ring(unit='bfloat16')", "ranks": 4, "sections": [8, 4]})
    >>> facts["collective"].ranks, facts["sections"]
    (4, (8, 4))
    """
    try:
        facts = {"collective": collective(entry["collective"], entry.get("ranks"))}
    except (TypeError, ValueError) as error:
        raise ValueError(f".collective: {error}") from error
    if "sections" in entry:
        if not isinstance(entry["sections"], list):
            raise ValueError(f".sections: must be a list of lengths, got {entry['sections']!r}")
        facts["sections"] = tuple(entry["sections"])
    return facts


def check_whole(where: str, unit, scales: dict) -> None:
    """ValueError if a unit makes whole products alone, and operands have scales, of blocks of K (role -> scale).

    >>> import softnum as sn
    >>> check_whole("units.forward", sn.MadUnit("binary32", operand="e5m2"), {"weights": "a scale"})
    """
    if scales and family_of(unit).whole is not None:
        raise ValueError(
            f"{where}: role {next(iter(scales))!r} has a scale, and sums of its blocks of K are scaled one by one, "
            "which a unit of kind 'split' does not make; state a format without a scale, or an undivided unit"
        )


def check_divisions(design, network, batch: int) -> None:
    """ValueError if ranks cannot share the K of a network's products, as a design says they do.

    Parameters
    ----------
    design : Design
    network
        As `make_network` returns it.
    batch : int
        Samples per iteration, of one worker.

    Examples
    --------
    >>> from softnum.train import load_design, make_network
    >>> check_divisions(load_design("c-wang-fp8"), make_network("mlp"), 32)
    """
    names = network.layer_names
    units = {name: design.layer(name, first=name == names[0], looked_up=name in network.looked_up).units
             for name in names}  # fmt: skip
    for row in network.gemms(batch):
        unit = units[row["layer"]][row["pass"]]
        if isinstance(unit, SplitDotUnit):
            try:
                unit.check_length(row["K"])
            except ValueError as error:
                raise ValueError(f"{design.path}: layer {row['layer']!r}: units.{row['pass']}: {error}") from error
