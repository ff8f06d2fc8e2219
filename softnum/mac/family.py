"""Families of units: one record of each, which says all that the rest of softnum asks of a kind of unit.

A family is a class of units and what is derived from it. The class's module states what its own floor knows; what lies
on a higher floor (traces, kernels, causes of vectors) is added by the module that has it, when that is imported::

    register(MyUnit, kind="mine", definition=MyEngine, adder=my_adder)  # in softnum.mac
    register(MyUnit, steps=my_steps)  # in softnum.inspect.steps
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Family", "family_of", "register"]


@dataclass(slots=True)
class Family:
    """The record of a family; a part that is None is not there.

    Attributes
    ----------
    kind : str
        Its name in design files.
    formats, needed, options : tuples of str
        In design files: which of its fields are formats, which keys cannot be left out, and its other keys; of options,
        None means all other fields but the operand.
    from_text : bool
        Whether the unit's expression makes the unit again: of constants alone, as files of vectors state units.
    of_blocks : bool
        Whether operands are BlockArrays.
    whole : ``(unit, a, b, c, key, threads)``
        The whole matrix product, of a unit whose results depend on their places in it, so that no engine makes a part.
    definition : ``(unit)``
        The engine on codes, `softnum.mac.products.engines`.
    fast : ``(unit)``
        The engine on carriers; None outside its domain.
    counting : ``(unit)``
        The engine on carriers whose ``run`` takes tallies too; None outside its domain.
    adder : ``(unit, fmt)``
        The unit whose dot product with ones is the sum of values of fmt.
    adds_operands : bool
        Whether what it adds are values of the operands' formats alone, for it has no adder but its dot product.
    sequence : ``(unit)``
        Of a unit that takes one product at a time: "steps" where the accumulator is all that passes from one to the
        next, "sums" where more does. None of others.
    steps : ``(unit, a, b, c, words)``
        The steps of a trace and the code of the result, `softnum.inspect.steps.step.steps_of`.
    growth : ``(unit, k, products, start)``
        What its roundings can make of an error, `softnum.inspect.bounds.growth`; None where nothing is known.
    chances : ``(unit, k, products, start)``
        The roundings of a stochastic sum, for bounds that hold with a probability.
    disclosure : ``(unit)``
        What its disclosure says besides its formats, `softnum.inspect.disclosure.statement.Statement`.
    running : ``(unit, a, b, c, words)``
        A bound of one sum's error from its steps, and the code of the result, `softnum.inspect.bounds.running`.
    loops : ``(loops, space, factors, tensors, unit, options)``
        An operator's sum in compiled loops, or None outside their domain, `softnum.tile.loops`.
    device : ``(unit, words)``
        The engine of CUDA arrays, `softnum.kernels.device.products.engines.engine_of`.
    causes : softnum.vectors.checks.unit_causes.Causes
        What is tried where a design's results differ.
    """

    kind: str | None = None
    formats: tuple[str, ...] = ("accumulator",)
    needed: tuple[str, ...] = ("accumulator",)
    options: tuple[str, ...] | None = None
    from_text: bool = True
    of_blocks: bool = False
    whole: Callable | None = None
    definition: Callable | None = None
    fast: Callable | None = None
    counting: Callable | None = None
    adder: Callable | None = None
    adds_operands: bool = False
    sequence: Callable | None = None
    steps: Callable | None = None
    disclosure: Callable | None = None
    growth: Callable | None = None
    chances: Callable | None = None
    running: Callable | None = None
    loops: Callable | None = None
    device: Callable | None = None
    causes: object = None


_families: dict[type, Family] = {}


def register(units: type, **parts) -> Family:
    """The record of a class of units, with these parts added; AttributeError of a part that `Family` does not have."""
    family = _families.setdefault(units, Family())
    for name, part in parts.items():
        setattr(family, name, part)
    return family


def family_of(unit) -> Family:
    """The record of a unit: that of its class, or of the nearest that this is derived from; an empty one if none has.

    >>> import softnum as sn
    >>> family_of(sn.ExactDotUnit("binary32", operand="e5m2")).kind
    'exact'
    """
    for units in type(unit).__mro__:
        if units in _families:
            return _families[units]
    return Family()
