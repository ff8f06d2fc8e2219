"""The examples of softnum.vectors run; its helpers agree with the reference."""

import doctest
import importlib
import pkgutil

import numpy as np

import softnum as sn
import softnum.vectors
from softnum import reference
from softnum.vectors.plans.codes import is_nan, value_text
from tests.support.cases import cases
from tests.support.format_lists import NARROW

MODULES = ["softnum.vectors"]
MODULES += [
    m.name
    for m in pkgutil.walk_packages(softnum.vectors.__path__, "softnum.vectors.")
    if not m.ispkg and "._" not in m.name
]


@cases("name", MODULES)
def test_examples(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0 and result.attempted > 0


@cases("name", [*NARROW, "q4.4", "uq2.6", "binary8p3se", "binary8p4uf", "binary6p1se"])
def test_nan_and_value_of_every_code(name):
    fmt = sn.format(name)
    codes = np.arange(min(2**fmt.bits, 2**16), dtype=np.uint64)
    if fmt.bits > 16:  # the highest and lowest of both signs, and what lies about infinity
        tops = [0, fmt.inf_code - 300, 2 ** (fmt.bits - 1) - 1000, 2**fmt.bits - 2**12]
        codes = np.concatenate([np.uint64(t) + codes[:1000] for t in tops])
    codes = codes.astype(fmt.storage_dtype)
    values = [reference.decode(int(c), fmt) for c in codes]
    assert is_nan(codes, fmt).tolist() == [v.kind == "nan" for v in values]
    for code, value in list(zip(codes, values, strict=True))[:: max(1, len(values) // 500)]:
        text = value_text(code, fmt)
        if value.kind == "finite":
            assert float(text) == value.fraction and text.startswith("-") == bool(value.sign)
        else:
            assert text.removeprefix("signaling ") == ("-" if value.kind == "inf" and value.sign else "") + value.kind


def test_a_value_beyond_binary64_is_shown_by_its_size():
    assert value_text(1, sn.format("e15m40")).startswith("~2**-16")
    assert value_text(1 << 55, sn.format("e15m40")) == "-0.0"
