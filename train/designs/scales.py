"""A role's ``scale`` as designs state it: which quantizer of `softnum.train.recipes` rounds the role's operands.

    scale = { per = "tensor" }                                # one scale, from the tensor's own largest magnitude
    scale = { per = "row", power_of_two = true }              # one for each row of the operand, which runs along K
    scale = { per = [1, 128] }                                # one for each tile: rows, and columns along K
    scale = { rule = "delayed", history = 1024, margin = 0 }  # one for the tensor, from the iterations before
    scale = { rule = "mx", per = [1, 32] }                    # powers of two
    scale = { rule = "nvfp4", per = [16, 16] }                # of e2m1fn: e4m3fn, and one for the tensor
    scale = { rule = "quest" }                                # of e2m1fn: powers of two by standard deviations
    scale = { rule = "tseng" }                                # of e2m1fn: powers of two, of 3/4 of the numbers

    scale = "mine.py:quantizer"                               # a quantizer of the user's own (`OwnScaling`)
    hadamard = { size = 16, signs = 0xD7E8 }                  # beside it: mixes numbers along K before they are rounded
    hadamard = { size = 32, signs = "random" }                # by other signs in each iteration
    backward = "trust"                                        # beside "quest": which gradients pass back, and how

Keys are fields of the quantizers, and mean what these say. A rule has those of its class alone.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
from typing import Any

import numpy as np

from softnum.arrays.conversion import quantize
from softnum.formats.blocks import format
from softnum.formats.facts import is_exact_in
from softnum.train.recipes import (
    SIGNS,
    BlockScaling,
    DelayedScaling,
    MXFP4Scaling,
    MXScaling,
    NVFP4Scaling,
    QuestScaling,
    Scaled,
    TensorScaling,
    TsengScaling,
    hadamard_transform,
)  # fmt: skip

__all__ = [
    "Hadamard",
    "OwnScaling",
    "describe_scale",
    "is_shared",
    "length_along",
    "of_all",
    "of_tensor",
    "scale_bits",
    "scale_of",
]

#: rule -> its keys besides rule and per
RULES = {
    "current": ("power_of_two", "epsilon", "reference", "most"),
    "delayed": ("history", "margin", "algorithm", "reference"),
    "mx": (),
    "quest": (),
    "tseng": (),
    "nvfp4": ("rows", "four_over_six", "fast", "scale_max", "reference"),
}
FLAGS, NUMBERS = ("power_of_two", "rows", "fast"), ("epsilon", "most", "margin")
WHOLE_NUMBERS = ("history", "scale_max")
_PER = {"current": (None, None), "delayed": (None, None), "mx": (1, 32), "nvfp4": (1, 16)}
_PER |= {"quest": (1, 32), "tseng": (1, 32)}
#: rule -> the roundings of its elements, besides "nearest_even"
_ROUNDINGS = {"nvfp4": "stochastic", "quest": "nearest_zero", "tseng": "stochastic"}


@dataclasses.dataclass(frozen=True)
class Hadamard:
    """A random Hadamard transform of what enters a product, along its K: `softnum.train.recipes.hadamard_transform`.

    Of both operands it leaves their product as it was, but for roundings. Each `size` neighbours are mixed; what is
    left over at the end of K is only rounded.

    Parameters
    ----------
    size : int
        A power of 2, from 2 to 64.
    signs : int or str
        Which rows of the matrix are negated, bit by bit; "random": `drawn` says it.
    format : format or str
        What the transform rounds to, once; binary32 holds it.

    Examples
    --------
    >>> Hadamard(4, 0)(np.float32([[1, 0, 0, 2, 7]])).tolist()
    [[1.5, -0.5, -0.5, 1.5, 7.0]]
    """

    size: int = 16
    signs: int | str = SIGNS
    format: Any = "binary32"

    def __post_init__(self) -> None:
        object.__setattr__(self, "format", format(self.format))
        if isinstance(self.size, bool) or self.size not in (2, 4, 8, 16, 32, 64) or not isinstance(self.size, int):
            raise ValueError(f".size: must be 2, 4, 8, 16, 32 or 64, got {self.size!r}")
        whole = isinstance(self.signs, int) and not isinstance(self.signs, bool)
        if self.signs != "random" and not (whole and 0 <= self.signs < 2**self.size):
            raise ValueError(
                f'.signs: must have a bit for each of {self.size} rows, or be "random", got {self.signs!r}'
            )
        if not is_exact_in(self.format, "float32"):
            raise ValueError(f".format: binary32 does not hold every value of {self.format}")

    def drawn(self, text: str) -> Hadamard:
        """The same transform with the signs that a text stands for, by BLAKE2b; itself if its signs are stated.

        >>> Hadamard(4, "random").drawn("1/fc1/1").signs, Hadamard(4, 0b0110).drawn("1/fc1/1").signs
        (13, 6)
        """
        if self.signs != "random":
            return self
        signs = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
        return dataclasses.replace(self, signs=signs % 2**self.size)

    def __call__(self, x, *, inverse: bool = False):
        """Matrices with K as their columns, transformed along it, or back."""
        whole = x.shape[-1] // self.size * self.size
        groups = np.ascontiguousarray(x[..., :whole])
        groups = groups.reshape(groups.size // self.size, self.size)
        mixed = hadamard_transform(groups, self.format, size=self.size, signs=self.signs, inverse=inverse)
        rest = quantize(np.ascontiguousarray(x[..., whole:]), self.format)
        return np.concatenate([mixed.reshape(*x.shape[:-1], whole), rest], axis=-1)

    def describe(self) -> dict:
        """The transform as plain data for a record.

        >>> Hadamard().describe()
        {'size': 16, 'signs': 55272, 'format': 'binary32'}
        """
        return {"size": self.size, "signs": self.signs, "format": str(self.format)}


@dataclasses.dataclass(frozen=True)
class OwnScaling:
    """A quantizer of the user's: a callable with a ``block``, that takes a float32 matrix with K as its columns.

    It returns elements, values of the role's format, and the scales of tiles; or both as
    ``softnum.train.recipes.Scaled`` has them.

    Parameters
    ----------
    source : str
        What the design file calls it.
    value : callable
    format : format
        Of the elements.

    Examples
    --------
    >>> import softnum as sn
    >>> def halved(x):
    ...     return sn.quantize(x / 2, "e5m2"), np.full((len(x), 1), 2, np.float32)
    >>> halved.block = (1, None)
    >>> OwnScaling("mine.py:halved", halved, sn.format("e5m2"))(np.float32([[3, 7]])).values()
    array([[3., 7.]], dtype=float32)
    """

    source: str
    value: Any
    format: Any

    def __post_init__(self) -> None:
        block = getattr(self.value, "block", None)
        sizes = block if isinstance(block, tuple) and len(block) == 2 else (0,)
        whole = all(size is None or (type(size) is int and size > 0) for size in sizes)
        if not callable(self.value) or not whole or sizes[0] is None is not sizes[-1]:
            raise ValueError(
                f": {self.source!r} must be callable and have a block: a tuple (rows, columns) of positive integers, "
                f"with None for all columns, or for all of both; got {self.value!r} with {block!r}"
            )

    @property
    def block(self) -> tuple[int | None, int | None]:
        """Rows and columns of a tile."""
        return self.value.block

    def __call__(self, x) -> Scaled:
        made = self.value(x)
        made = made if isinstance(made, Scaled) else Scaled(*made, self.block)
        tiles = tuple(-(-size // (part or max(size, 1))) for size, part in zip(x.shape, self.block, strict=True))
        if np.shape(made.elements) != x.shape or np.shape(made.scales) != tiles or made.block != self.block:
            raise ValueError(
                f"{self.source!r} returned elements of shape {np.shape(made.elements)} and scales of "
                f"{np.shape(made.scales)}, in tiles {made.block}; of a matrix {x.shape} in tiles {self.block} they are "
                f"{x.shape} and {tiles}"
            )
        elements, scales = (np.asarray(part, np.float32) for part in made[:2])
        if not np.array_equal(quantize(elements, self.format), elements, equal_nan=True):
            raise ValueError(f"{self.source!r} returned elements that are no values of the role's format {self.format}")
        return made._replace(elements=elements, scales=scales)


def scale_of(entry: object, fmt, rounding: str = "nearest_even", stochastic_bits: int = 32):
    """The quantizer that a table ``scale`` of a role states.

    Parameters
    ----------
    entry : dict
    fmt : format
        Of the elements.
    rounding, stochastic_bits
        Of the role.

    Returns
    -------
    quantizer of softnum.train.recipes

    Raises
    ------
    ValueError
        Its message begins with the key that is wrong, or with nothing where that is the role's format or rounding.

    Examples
    --------
    >>> import softnum as sn
    >>> scale_of({"per": [1, 128], "power_of_two": True}, sn.format("e4m3fn")).block
    (1, 128)
    """
    if not isinstance(entry, dict):
        raise ValueError(f' must be a table like {{ per = "tensor" }}, got {entry!r}')
    rule = entry.get("rule", "current")
    if not isinstance(rule, str) or rule not in RULES:
        raise ValueError(f".rule: must be one of {', '.join(map(repr, RULES))}, got {rule!r}")
    known = ("per", "rule", *RULES[rule])
    for key, value in entry.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.3)
            other = [name for name, keys in RULES.items() if key in keys]
            hint = f"; it is a key of rule {other[0]!r}" if other else f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f": unknown key {key!r} of rule {rule!r}{hint} (known: {', '.join(known)})")
        _check_kind(key, value)
    block = _block(entry["per"]) if "per" in entry else _PER[rule]
    options = {key: value for key, value in entry.items() if key not in ("per", "rule")}
    if rounding not in ("nearest_even", _ROUNDINGS.get(rule)):
        may = f"'nearest_even' or {_ROUNDINGS[rule]!r}" if rule in _ROUNDINGS else "'nearest_even'"
        raise ValueError(f": elements of rule {rule!r} are rounded by {may}, got rounding {rounding!r}")
    if not is_exact_in(fmt, "float32"):
        raise ValueError(f": elements are scaled in binary32, which {fmt} does not fit; give the role another format")
    try:
        return _quantizer(rule, fmt, block, options, rounding, stochastic_bits)
    except (TypeError, ValueError) as error:
        raise ValueError(f": {error}") from error


def _quantizer(rule: str, fmt, block: tuple, options: dict, rounding: str, stochastic_bits: int):
    if rule == "delayed":
        if block != (None, None):
            raise ValueError('rule "delayed" has one scale for the tensor; leave out per, or take rule = "current"')
        return DelayedScaling(fmt, **options)
    if rule == "current":
        options = {"power_of_two": False, **options}
        return TensorScaling(fmt, **options) if block == (None, None) else BlockScaling(fmt, block, **options)
    if None in block:
        raise ValueError(f"rule {rule!r} needs tiles; state them as in per = [{_PER[rule][0]}, {_PER[rule][1]}]")
    if rule == "mx":
        return MXFP4Scaling(block) if str(fmt) == "e2m1fn" else MXScaling(fmt, block)
    if str(fmt) != "e2m1fn":
        raise ValueError(f'rule {rule!r} is defined for format "e2m1fn", got {str(fmt)!r}')
    if rule == "quest":
        return QuestScaling(block, rounding)
    if rule == "tseng":
        return TsengScaling(block, rounding, stochastic_bits)
    return NVFP4Scaling(block, rounding=rounding, stochastic_bits=stochastic_bits, **options)


def _check_kind(key: str, value: object) -> None:
    if key in FLAGS and not isinstance(value, bool):
        raise ValueError(f".{key}: must be true or false, got {value!r}")
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if key in NUMBERS and not (number and abs(value) <= np.finfo(np.float32).max):
        raise ValueError(f".{key}: must be a number, got {value!r}")
    if key == "margin" and abs(value) > 100:
        raise ValueError(f".margin: must be an exponent of 2 from -100 to 100, got {value!r}")
    if key in ("epsilon", "most") and value < 0:
        raise ValueError(f".{key}: must not be negative, got {value!r}")
    if key in WHOLE_NUMBERS and not (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        raise ValueError(f".{key}: must be a positive integer, got {value!r}")


def _block(per: object) -> tuple[int | None, int | None]:
    if per == "tensor":
        return None, None
    if per == "row":
        return 1, None
    sizes = per if isinstance(per, list) and len(per) == 2 else [0]
    if all(isinstance(size, int) and not isinstance(size, bool) and size > 0 for size in sizes):
        return tuple(sizes)
    raise ValueError(f'.per: must be "tensor", "row", or [rows, columns] of a tile, like [1, 128], got {per!r}')


def block_of(scale) -> tuple[int | None, int | None]:
    """Rows and columns of a tile of a quantizer, None for all."""
    return (None, None) if isinstance(scale, DelayedScaling) else scale.block


def length_along(scale) -> int | None:
    """How many numbers along K share a scale of a quantizer; None: all of them.

    >>> length_along(NVFP4Scaling()), length_along(DelayedScaling())
    (16, None)
    """
    return block_of(scale)[1]


def of_tensor(scale) -> bool:
    """Whether one scale is that of the whole tensor.

    >>> of_tensor(DelayedScaling()), of_tensor(NVFP4Scaling())
    (True, False)
    """
    return block_of(scale) == (None, None)


def of_all(rounding) -> bool:
    """Whether a role's scales follow from the largest magnitude of all its tensor: `of_tensor`, or nvfp4's factor.

    >>> import softnum as sn
    >>> from softnum.train.designs.design import RoleRounding
    >>> of_all(RoleRounding(sn.format("nvfp4"))), of_all(RoleRounding(sn.format("mxfp4")))
    (True, False)
    """
    if rounding.scale is None:
        return rounding.block and rounding.format.tensor_scale is not None
    return of_tensor(rounding.scale) or (isinstance(rounding.scale, NVFP4Scaling) and not rounding.scale.rows)


def is_shared(scale) -> bool:
    """Whether an operand's tiles are the same along both its axes, so that it is rounded once for all products.

    >>> is_shared(BlockScaling(block=(128, 128))), is_shared(BlockScaling(block=(1, 128)))
    (True, False)
    """
    rows, columns = block_of(scale)
    return rows == columns and not getattr(scale, "rows", False)


def scale_bits(scale) -> float:
    """Bits that an element's share of its tile's scale takes; that of a row or a tensor counts as nothing.

    >>> scale_bits(BlockScaling(block=(1, 128))), scale_bits(NVFP4Scaling())
    (0.25, 0.5)
    """
    rows, columns = block_of(scale)
    if rows is None or columns is None:
        return 0
    return (32 if isinstance(scale, (BlockScaling, OwnScaling)) else 8) / (rows * columns)


def describe_scale(scale) -> dict[str, Any]:
    """A quantizer as plain data for a record: what `scale_of` makes it of again, all fields stated.

    >>> describe_scale(DelayedScaling("e4m3fn", history=16))
    {'rule': 'delayed', 'per': 'tensor', 'history': 16, 'margin': 0, 'algorithm': 'max', 'reference': 'cuda'}
    """
    if isinstance(scale, OwnScaling):
        return {"rule": scale.source}
    rules = {BlockScaling: "current", TensorScaling: "current", DelayedScaling: "delayed", NVFP4Scaling: "nvfp4"}
    rules |= {QuestScaling: "quest", TsengScaling: "tseng"}
    rule = rules.get(type(scale), "mx")
    block = block_of(scale)
    per = {(None, None): "tensor", (1, None): "row"}.get(block, list(block))
    fields = {field.name: getattr(scale, field.name) for field in dataclasses.fields(scale)}
    return {"rule": rule, "per": per, **{key: value for key, value in fields.items() if key in RULES[rule]}}
