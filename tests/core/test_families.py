"""Records of families of units: every public unit has one, and what they name is there."""

from dataclasses import dataclass, fields

import numpy as np
import pytest

import softnum as sn
import softnum.vectors
from softnum.mac.families import FAMILIES
from softnum.mac.family import family_of, register
from softnum.mac.mad import MadUnit, Unit
from softnum.vectors.checks.unit_causes import Causes


def test_every_public_unit_has_a_record():
    above = {sn.SplitDotUnit}  # of softnum.collectives, which softnum.mac does not import
    assert {getattr(sn, name) for name in sn.__all__ if name.endswith("Unit")} == set(FAMILIES) | above
    unit = sn.SplitDotUnit(MadUnit("binary32", operand="bfloat16"), sn.collective("ring", 2, unit="bfloat16"))
    assert family_of(unit).kind == "split"


@pytest.mark.parametrize("units", FAMILIES, ids=lambda units: units.__name__)
def test_what_a_record_names_is_there(units):
    family, names = FAMILIES[units], {f.name for f in fields(units)}
    assert {*family.formats, *family.needed, *(family.options or ())} <= names
    assert family.definition or family.of_blocks
    assert bool(family.causes) == family.from_text


def test_a_definition_counts_in_rows_that_are_there():
    @dataclass(frozen=True, repr=False)
    class Borrowed(Unit):  # the definition of a MadUnit, and not its kinds of roundings
        accumulator: object
        operand: tuple

    mad = MadUnit("e6m9", operand="e5m2")
    register(Borrowed, definition=lambda unit: family_of(mad).definition(mad))
    unit, x = Borrowed(mad.accumulator, mad.operand), np.ones((2, 2), np.float32)
    assert np.array_equal(sn.matmul(x, x, unit), [[2, 2], [2, 2]])
    with pytest.raises(ValueError, match="a row for each of 5 kinds of roundings, got 1"):
        sn.matmul(x, x, unit, return_stats=True)


def test_a_family_without_causes_has_none_of_its_own():
    spec = softnum.vectors.UnitSpec.make("dot", "ExactDotUnit('e6m9', operand='e5m2')")
    assert [*Causes().own(spec)] == []


def test_a_derived_class_shares_the_record_and_others_have_an_empty_one():
    class Mine(MadUnit):
        pass

    class Strange(Unit):
        pass

    assert family_of(Mine("e6m9", operand="e5m2")) is FAMILIES[MadUnit]
    assert family_of(Strange()).definition is None and family_of(None).kind is None
    with pytest.raises(AttributeError, match="colour"):
        register(Strange, colour="red")
