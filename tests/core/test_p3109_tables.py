"""The value tables of IEEE P3109's working group, code by code.

SOFTNUM_P3109_TABLES names a folder of them: a checkout of github.com/P3109/Public, whose "Value Tables" hold a file for
each of the 504 formats of 3 to 16 bits.
"""

import csv
import os
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from tests.support.cases import cases

FOLDER = os.environ.get("SOFTNUM_P3109_TABLES")
FILES = {path.stem.lower(): path for path in sorted(Path(FOLDER).rglob("Binary*p*.csv"))} if FOLDER else {}
NAMES = [
    f"binary{k}p{p}{kind}"
    for k in range(3, 17)
    for p in range(1, k + 1)
    for kind in (("se", "sf") if p < k else ()) + ("ue", "uf")
]

pytestmark = pytest.mark.skipif(
    not FOLDER, reason="SOFTNUM_P3109_TABLES names no folder of value tables, as github.com/P3109/Public has them"
)


def number(text):
    """A hexadecimal number with a binary exponent, exactly; inf and nan as floats."""
    found = re.fullmatch(r"(-?)0x([0-9a-f]+)(?:\.([0-9a-f]*))?p([+-]?\d+)", text.lower())
    if not found:
        return float(text)
    sign, whole, part, exponent = found.groups()
    digits = Fraction(int(whole + (part or ""), 16), 16 ** len(part or ""))
    return (-1 if sign else 1) * digits * Fraction(2) ** int(exponent)


def test_a_table_for_every_format():
    assert len(NAMES) == 504 and set(FILES) == set(NAMES)


@cases("name", NAMES)
def test_values(name):
    """The value of each code, and whether it is subnormal; what the reference says of a part of them."""
    fmt = sn.format(name)
    with FILES[name].open(newline="") as file:
        rows = list(csv.DictReader(file))
    codes = np.array([int(row["codepoint"], 16) for row in rows], fmt.storage_dtype)
    assert codes.tolist() == list(range(1 << fmt.bits))
    want = [number(row["value"]) for row in rows]
    got = sn.decode(codes, fmt, object)
    wrong = [(c, g, w) for c, g, w in zip(codes.tolist(), got, want, strict=True) if g != w and (g == g or w == w)]
    assert not wrong, wrong[:3]
    subnormal = [row["subnormal"].strip() == "*" for row in rows]
    classes = sn.classify(codes, fmt)
    assert [name in (4, 7) for name in classes.tolist()] == subnormal
    for code in codes.tolist()[:: max(1, len(codes) // 64)]:
        value = ref.decode(code, fmt)
        assert value.kind == "nan" if want[code] != want[code] else value.kind == "inf" or value.fraction == want[code]
