"""Sums as trees in one call: the bits of the levels, one operation each, and the same rounding sites."""

from __future__ import annotations

import numpy as np

import softnum as sn
from softnum.train import Numerics, design_names, load_design
from softnum.train.designs import RoleRounding
from softnum.train.engine.backend import NumpyBackend, by_levels
from tests.support.cases import cases
from tests.support.core_oracles import assert_same_bits


class Counting(NumpyBackend):
    """Counts additions of levels."""

    added = 0

    def operate(self, operation, operands, role, key):
        self.added += 1
        return super().operate(operation, operands, role, key)


def numbers(shape, fmt):
    rng = np.random.Generator(np.random.Philox(7))
    return sn.quantize(rng.normal(size=shape).astype(np.float32), fmt, overflow="saturate")


ROLES = {
    "binary32": RoleRounding(sn.format("binary32")),
    "e6m9": RoleRounding(sn.format("e6m9")),
    "q4.4 saturating": RoleRounding(sn.format("q4.4"), overflow="saturate"),
    "q4.4 wrapping": RoleRounding(sn.format("q4.4"), overflow="wrap"),
    "e6m9 stochastic": RoleRounding(sn.format("e6m9"), "stochastic", stochastic_bits=12),
    "own": RoleRounding(sn.CustomFormat.from_table(np.arange(-8.0, 8.0) / 4)),
}


@cases("name", ROLES)
@cases("carrier", [np.float32, np.float64])
def test_one_call_gives_the_bits_of_the_levels(name, carrier):
    role = ROLES[name]
    for shape, axes, count in (
        ((13, 4, 3), "rows", 13), ((5, 3, 37), "last", 37), ((3, 5, 4, 4), "pixels", 48), ((1, 6), "rows", 1)
    ):  # fmt: skip
        x, keys = numbers(shape, role.format).astype(carrier), [(5, n) for n in range((count - 1).bit_length())]
        got, backend = NumpyBackend(carrier).total(x, role, keys, axes), Counting(carrier)
        assert_same_bits(got, by_levels(backend, x, role, keys, axes), name, axes)
        assert backend.added == len(keys)


def test_only_random_words_and_what_lacks_a_way_go_level_by_level():
    for name, role in ROLES.items():
        backend, x = Counting(), numbers((12, 3), role.format)
        backend.total(x, role, [(1, n) for n in range(4)])
        assert (backend.added == 0) == (name in ("binary32", "e6m9", "q4.4 saturating")), name


@cases("design", design_names())
def test_sites_are_numbered_by_levels(design):
    """A total takes one site for each level, whichever way it goes."""
    numerics = Numerics(load_design(design), ["conv1", "fc2"], seed=1)
    layer, site = numerics.layer("conv1"), numerics._site
    x = layer.round("statistics", numbers((3, 2, 5, 2), "e5m2"))
    sums = layer.total_of_channels("statistics", x)
    assert numerics._site - site == 1 + 5 and sums.shape == (2,)
    numerics.begin(0)
    layer.round("statistics", x)
    want = layer.total("statistics", numerics.backend.pixels(x))
    assert_same_bits(sums, want)
    assert layer.total("statistics", x, last=True).shape == (3, 2, 5, 1)
