"""What a matrix product and its gradients are computed in: a unit for each pass, and how its operands are rounded."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path

from softnum.formats.blocks import format
from softnum.formats.modes import rounding_name
from softnum.mac.mad import Unit
from softnum.mac.presets import unit_of, units
from softnum.train.designs.design import OPERAND_ROLES, PASSES, SAVED, Design, LayerDesign, RoleRounding
from softnum.train.designs.reader import load_design

__all__ = ["SITES", "Arithmetic", "Pass", "Rounded", "arithmetic", "of_layer"]

_OPERANDS = tuple(f"{key}.{role}" for key, roles in OPERAND_ROLES.items() for role in roles)
#: by how much the key of a rounding, or of a product, is jumped from that of a call of a design's arithmetic
SITES = ("activations", "weights", "errors", "start", *PASSES, *_OPERANDS, "weight_gradients")


@dataclass(frozen=True)
class Rounded:
    """How an operand is rounded, and by which jump of the call's key."""

    format: object
    rounding: str = "nearest_even"
    overflow: str | None = None
    stochastic_bits: int = 32
    site: int = 0

    @property
    def stochastic(self) -> bool:
        """Whether it takes random bits."""
        return rounding_name(self.rounding).startswith("stochastic")


@dataclass(frozen=True)
class Pass:
    """One product: its unit, how both operands are rounded (None: they are values of the unit's), and its jump."""

    unit: Unit
    left: Rounded | None
    right: Rounded | None
    site: int


@dataclass(frozen=True)
class Arithmetic:
    """What `softnum.jax.arithmetic` makes.

    Attributes
    ----------
    name : str
        For messages.
    forward, backward_data, backward_weight : Pass
        As the passes of a design: input @ other, errors @ other^T, input^T @ errors.
    start : Rounded, optional
        How C is rounded; None: it is of values of the unit's C.
    weight_gradients : Rounded, optional
        What `softnum.jax.weight_gradients` rounds to.
    whole : bool
        Whether an `input` of more than two axes is, beside an `other` of two, one matrix: so of designs.
    direct : bool
        Whether convolutions are computed directly, without a transform of the design's ``[convolution]``.
    """

    name: str
    forward: Pass
    backward_data: Pass
    backward_weight: Pass
    start: Rounded | None = None
    weight_gradients: Rounded | None = None
    whole: bool = False
    direct: bool = True

    @functools.cached_property
    def stochastic(self) -> bool:
        """Whether any of the three products, or of their operands' roundings, takes random bits."""
        passes = self.forward, self.backward_data, self.backward_weight
        roundings = [x for part in passes for x in (part.left, part.right)] + [self.start]
        return any(part.unit.stochastic for part in passes) or any(x.stochastic for x in roundings if x)


def arithmetic(
    what: Design | Unit | str | Path | Arithmetic, layer: str = "", *, first: bool = False,
    backward_data: Unit | str | None = None, backward_weight: Unit | str | None = None,
) -> Arithmetic:  # fmt: skip
    """The arithmetic of a design's layer, or of units alone.

    Parameters
    ----------
    what : Design, Unit, str or pathlib.Path
        A design, its file or the name of a shipped one; or a unit of single numbers, a preset's name or the unit's
        expression.
    layer : str
        Of a design: the layer, to which its ``[layers]`` tables apply.
    first : bool
        Of a design: whether the layer takes the model's input, whose ``activations`` are the role ``input``.
    backward_data, backward_weight : Unit or str, optional
        Of a unit: those of the gradients. Default: the unit.

    Returns
    -------
    Arithmetic
        Of a design, operands are rounded to its roles in each pass, from the numbers that were passed in. Of a unit
        they must be values of its formats, as `softnum.matmul` takes them; in backward passes they are rounded to those
        of the unit there, to nearest even. Gradients go straight through every rounding.

    Raises
    ------
    ValueError
        If the design has ``[layers]`` tables and no layer is named.
    NotImplementedError
        If a role of the design has blocks, a scale or sparsity, which `softnum.torch` computes.

    Examples
    --------
    >>> import softnum.jax as sj
    >>> a = sj.arithmetic("c-wang-fp8", "conv1")
    >>> str(a.forward.unit.result), str(a.backward_data.left.format)
    ('e6m9', 'e5m2')
    >>> sj.arithmetic("MadUnit('e6m9', operand='e5m2')").backward_data.right is None
    False
    """
    if isinstance(what, Arithmetic):
        return what
    if isinstance(what, Unit) or (isinstance(what, str) and ("(" in what or what in units())):
        unit = unit_of(what)
        others = [unit if other is None else unit_of(other) for other in (backward_data, backward_weight)]
        return _of_units(unit, *others)
    if backward_data is not None or backward_weight is not None:
        raise ValueError("softnum.jax.arithmetic: a design states the units of its passes; leave out backward_...")
    if not isinstance(what, (Design, str, Path)):
        raise TypeError(f"softnum.jax.arithmetic takes a design or a unit, got {what!r}")
    design = what if isinstance(what, Design) else load_design(what)
    if design.layers and not layer:
        raise ValueError(
            f"softnum.jax: design {design.name!r} has [layers] tables, which name modules; state which layer this is, "
            f"softnum.jax.arithmetic(design, 'fc1'), or intercept a model by rules"
        )
    return of_layer(design, layer, first)


def _of_units(forward: Unit, data: Unit, weight: Unit) -> Arithmetic:
    def backward(unit: Unit, site: int) -> Pass:
        left, right = (Rounded(fmt) for fmt in unit.operand)
        return Pass(unit, left, right, site)

    return Arithmetic(f"unit {forward!r}", Pass(forward, None, None, 0), backward(data, 1), backward(weight, 2))


def of_layer(stated: Design, layer: str, first: bool) -> Arithmetic:
    """The arithmetic of a design's layer; of "" that of no name.

    >>> from softnum.jax.numerics import of_layer
    >>> from softnum.train import load_design
    >>> of_layer(load_design("c-wang-fp8"), "", False).name
    "design 'c-wang-fp8'"
    """
    name, design = stated.name, stated.layer(layer, first=first)
    activations = "input" if first else "activations"
    where = f"softnum.jax: design {name!r}" + (f", layer {layer!r}" if layer else "")
    if SAVED in design.roles:
        raise NotImplementedError(f"{where}: role {SAVED!r} keeps activations in another format; softnum.torch does it")
    passes = []
    for key in PASSES:
        roles = [activations if role == "activations" else role for role in OPERAND_ROLES[key]]
        parts = [_rounded(where, key, role, design) for role in roles]
        passes.append(Pass(design.units[key], *parts, SITES.index(key)))
    start = design.start_roundings[activations == "input"]
    last = _checked(where, "weight_gradients", design.roles["weight_gradients"], SITES.index("weight_gradients"))
    return Arithmetic(
        f"design {name!r}", *passes, start=_checked(where, "start", start, SITES.index("start")),
        weight_gradients=last, whole=True, direct=design.convolution is None,
    )  # fmt: skip


def _rounded(where: str, key: str, role: str, design: LayerDesign) -> Rounded:
    """The rounding of a role in a pass."""
    name = design.name(key, role)
    place = name.replace("input", "activations")
    return _checked(where, name, design.roles[name], SITES.index(place))


def _checked(where: str, role: str, rounding: RoleRounding, site: int) -> Rounded:
    given = {
        "blocks or a scale": rounding.by_products, "sparsity": rounding.sparsity is not None,
        "a Hadamard transform": rounding.hadamard is not None, 'backward = "trust"': rounding.trust,
        f"random bits of {rounding.random}": rounding.stochastic and not rounding.random_source.is_default,
    }  # fmt: skip
    for what, is_given in given.items():
        if is_given:
            raise NotImplementedError(
                f"{where}: role {role!r} ({rounding.format}) has {what}, and softnum.jax takes roundings of single "
                "numbers; softnum.torch.convert computes it, or state another format for the role"
            )
    fmt = format(rounding.format)
    return Rounded(fmt, rounding.rounding, rounding.overflow, rounding.stochastic_bits, site)
