"""Records of families of units: every public unit has one, and what they name is there."""

from dataclasses import fields

import pytest

import softnum as sn
import softnum.vectors
from softnum.mac.families import FAMILIES
from softnum.mac.family import family_of, register
from softnum.mac.mad import MadUnit, Unit


def test_every_public_unit_has_a_record():
    assert {getattr(sn, name) for name in sn.__all__ if name.endswith("Unit")} == set(FAMILIES)


@pytest.mark.parametrize("units", FAMILIES, ids=lambda units: units.__name__)
def test_what_a_record_names_is_there(units):
    family, names = FAMILIES[units], {f.name for f in fields(units)}
    assert {*family.formats, *family.needed, *(family.options or ())} <= names
    assert family.definition or family.of_blocks
    assert bool(family.causes) == (family.from_text and not family.of_blocks)


def test_a_derived_class_shares_the_record_and_others_have_an_empty_one():
    class Mine(MadUnit):
        pass

    class Strange(Unit):
        pass

    assert family_of(Mine("e6m9", operand="e5m2")) is FAMILIES[MadUnit]
    assert family_of(Strange()).definition is None and family_of(None).kind is None
    with pytest.raises(AttributeError, match="colour"):
        register(Strange, colour="red")
