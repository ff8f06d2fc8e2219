"""The floors of the packages: what a module may import."""

from __future__ import annotations

__all__ = ["C_FLOORS", "FLOORS"]

#: lowest first; a floor imports from itself and from those below
_TOWER = (
    "softnum.runtime", "softnum.formats", "softnum.arrays", "softnum.ops", "softnum.mac", "softnum.mac.products",
    "softnum.collectives", "softnum.inspect", "softnum.tile", "softnum.kernels", "softnum.train",
)  # fmt: skip
_BESIDE = ("softnum.reference", "softnum.vectors", "softnum.tta", "softnum.torch", "softnum.jax", "softnum.cli")
_BELOW = {floor: {*_TOWER[:i]} for i, floor in enumerate(_TOWER)}

#: floor, the prefix of its modules' names -> floors that it imports from besides itself; a longer prefix goes first
FLOORS = {
    **_BELOW,
    "softnum.reference": set(),
    "softnum.wide": _BELOW["softnum.mac"] | {"softnum.reference"},
    "softnum.inspect": _BELOW["softnum.inspect"] | {"softnum.reference"},
    "softnum.vectors": _BELOW["softnum.kernels"] | {"softnum.reference"},
    "softnum.tta": {"softnum.runtime", "softnum.formats", "softnum.mac", "softnum.collectives"},
    "softnum.train": _BELOW["softnum.train"] | {"softnum.tta"},
    "softnum.train.designs.shipped": {"softnum"},  # what a user's file would be
    "softnum.torch": {*_TOWER, "softnum.tta"},
    "softnum.jax": {*_TOWER},
    "softnum.cli": {*_TOWER, *_BESIDE, "softnum"} - {"softnum.cli"},
    "softnum": {*_TOWER, *_BESIDE, "softnum.wide"},
}

#: folders of csrc, lowest first: a file includes headers of its own and of those before it; ".": softnum.h alone
C_FLOORS = (
    ".", "softnum/word", "softnum/rounding", "softnum/operations", "softnum/elementary", "softnum/units", "softnum",
    "softnum/device", "dispatch", "lanes", "elementwise", "draw", "products", "targets", "library", "dpi",
    "tests",
)  # fmt: skip
