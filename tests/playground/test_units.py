"""The playground's lab of units: every named unit's result and steps are the package's, and the page works."""

from __future__ import annotations

import json

import numpy as np
import pytest

import softnum as sn
from tests.support.playground import change, native, opened, rows_of, texts_in, value_of, window
from tests.support.playground_sums import DISTRIBUTIONS, UNITS, build, drawn


def sums(unit, count: int, rng):
    """Texts of a, b and c: powers that spread, signs that cancel, and integers for integers' units."""
    whole = isinstance(unit.operand[0], sn.FixedFormat)
    for i in range(count):
        k = int(rng.integers(1, 40))
        spread = 0 if whole else (3, 6, 1)[i % 3]
        a, b = (rng.integers(-15, 16, k) * np.exp2(rng.integers(-spread, spread + 1, k)) for _ in range(2))
        c = float(rng.integers(-100, 100)) * (1 if whole else 2.0 ** int(rng.integers(-4, 8)))
        yield a, b, c


def texts_of(x) -> str:
    return " ".join(np.format_float_positional(v, trim="-") for v in np.atleast_1d(x))


def made_by_package(unit, a, b, c):
    """The code of the unit's sum, by softnum.matmul."""
    x, y = (sn.array(v, f, overflow=None) for v, f in zip((a, b), unit.operand, strict=True))
    c_format = unit.outer_accumulator or unit.accumulator if isinstance(unit, sn.MadUnit) else unit.accumulator
    return sn.matmul(x.reshape(1, -1), y.reshape(-1, 1), unit, sn.array([[c]], c_format))


def requests_of(names, count: int):
    """For each unit and sum a request, and what it is about."""
    for name in names:
        unit, rng = UNITS[name], np.random.default_rng(len(name))
        for a, b, c in sums(unit, count, rng):
            yield ("dot", build.spec_of(unit), texts_of(a), texts_of(b), texts_of(c), "", "trace"), (unit, a, b, c)


def check_sums(texts, names, count: int) -> int:
    """Compare results and steps; returns how many."""
    cases = list(requests_of(names, count))
    compared = 0
    for (request, (unit, a, b, c)), text in zip(cases, texts([r for r, _ in cases]), strict=True):
        got = json.loads(text)
        assert "result" in got, (request, got)
        result = sn.format(got["format"])
        for i in [*range(1, len(a), max(1, len(a) // 3)), len(a)]:
            want = made_by_package(unit, a[:i], b[:i], c)
            code = np.asarray(sn.encode(np.asarray(want, np.float64), result)).item()
            assert int(got["trace"][i - 1]["code"], 16) == code, (request, i)
            compared += 1
        assert got["result"]["code"] == got["trace"][-1]["code"]
    return compared


def test_the_named_units_are_those_of_the_package():
    named, lack = build.named_units(), [n for n, u in build.named_units().items() if build.spec_of(u) is None]
    assert set(sn.units()) <= set(named) and len(UNITS) >= 80
    kinds = {type(named[name]).__name__ for name in lack}
    assert kinds >= {"TwoStageDotUnit", "GroupedDotUnit", "BlockDotUnit"} and "ExactDotUnit" not in kinds


def test_every_unit_gives_the_packages_bits():
    assert check_sums(native().texts, UNITS, 3) > 3 * len(UNITS)


def test_exact_sums_and_targets():
    spec = build.spec_of(sn.unit("nvidia_h100_fp16"))
    got = native().ask("dot", spec, "1 1 1", "16777216*2^-24 1 2", "16777216", "16777220")
    assert got["target"] and got["is_exact"] and got["result"]["value"] == "16777220"
    for target, hit in (
        ("#4b800002", True),
        ("16777219", False),
        ("nan", False),
        ("inf", False),
        ("16777220.0001", False),
    ):
        assert native().ask("dot", spec, "1 1 1", "1 1 2", "16777216", target)["target"] is hit, target
    lost = native().ask("dot", spec, "1 1", "1 1*2^-30", "0")
    assert lost["result"]["value"] == "1" and lost["exact"]["value"] == "1"
    zero = made_by_package(sn.unit("nvidia_h100_fp16"), np.zeros(1), -np.ones(1), -0.0)
    sign = "-" if np.signbit(np.asarray(zero, np.float64)).item() else ""
    for target in ("-0", "0"):
        assert native().ask("dot", spec, "0", "-1", "-0", target)["target"] is (target == f"{sign}0")
    assert native().ask("dot", spec, "0.1", "1", "0")["inexact"]


@pytest.mark.parametrize(
    ("request_", "match"),
    [
        (("dot", "kind=7", "1", "1", ""), "a is null"), (("dot", "kind", "1", "1", ""), "name=value"),
        (("dot", "colour=7", "1", "1", ""), "no 'colour'"), (("dot", "kind=x", "1", "1", ""), "no integer"),
        (("dot", "kind=0;a=e5m2;b=e5m2;accumulator=e6m3", "1 2", "1", ""), "a has 2 numbers and b 1"),
        (("dot", "kind=0;a=e5m2;b=e5m2;accumulator=e6m3", "", "", ""), "at least one"),
        (("dot", "kind=0;a=e5m2;b=e5m2;accumulator=e6m3", "1", "1", "1 2"), "one number, or none"),
        (("dot", "kind=0;a=e5m2;b=e5m2;accumulator=e6m3", "1 " * 65, "1", ""), "at most 64"),
        (("dot", "kind=0;a=e5m2;b=e5m2;accumulator=e6m3", "x", "1", ""), "no number"),
        (("dot", "kind=0;a=e5m2;b=e5m2;accumulator=e6m3", "1", "1", "", "#zz"), "no hexadecimal"),
        (("dot", "kind=0;a=e2m1fn;b=e5m2;accumulator=e6m3", "nan", "1", ""), "has no code in e2m1fn"),
        (("dot", "x" * 500, "1", "1", ""), "is no unit"), (("draw", "65", "bell", "1"), "from 1 to 64"),
        (("draw", "6", "odd", "1"), "unknown distribution"), (("draw", "6", "bell", "-1"), "seed"),
    ],
)  # fmt: skip
def test_errors_say_what_is_wrong(request_, match):
    assert match in native().ask(*request_)["error"]


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_numbers_are_drawn_from_the_stated_words(name):
    got = native().ask("draw", 64, name, 5, "e8m23")
    for stream, part in enumerate("ab"):
        want = sn.quantize(drawn(name, 5, stream, 64), "e8m23")
        np.testing.assert_array_equal([float(v["value"]) for v in got[part]], want)


def test_the_page_computes_the_same_bits(browser):
    page = opened(browser, "units.html")
    assert page.execute_script("return SOFTNUM_DATA.units") == {n: build.spec_of(u) for n, u in UNITS.items()}
    requests = [request for request, _ in requests_of(UNITS, 3)]
    requests += [("draw", 20, name, seed, "e5m7") for name in DISTRIBUTIONS for seed in range(3)]
    assert texts_in(page)(requests) == native().texts(requests)


@pytest.mark.slow
def test_the_page_computes_the_same_bits_of_thousands(browser):
    page = opened(browser, "units.html")
    assert check_sums(texts_in(page), UNITS, 20) > 5000


def test_which_gpu_gave_this_number(browser):
    window(browser, 1000)
    page = opened(browser, "units.html")
    example = build.SUMS[2]
    change(page, "example", "2")
    a, b, c = map(np.array, example[1:])
    want = {name: float(np.asarray(made_by_package(u, a, b, float(c))).item()) for name, u in UNITS.items()}
    lost = float(example[3])
    change(page, "target", build.number_text(lost))
    hits = [row[0] for row in page.execute_script(
        "return [...document.querySelectorAll('#results tr.hit')].map((r) => [...r.cells].map((c) => c.textContent))"
    )]  # fmt: skip
    assert sorted(hits) == sorted(name for name, value in want.items() if value == lost) and 3 < len(hits) < len(UNITS)
    assert value_of(page, "found") == f"{len(hits)} of {len(UNITS)} units give {build.number_text(lost)}."
    assert [row[0] for row in rows_of(page, "results")[: len(hits)]] == hits  # they come first
    others = {row[0]: row[3] for row in rows_of(page, "results") if row[3].endswith("(from the file)")}
    assert set(others) == set(build.named_units()) - set(UNITS)
    change(page, "operands", "e4m3fn")
    assert {row[1] for row in rows_of(page, "results")} == {"e4m3fn"}
    change(page, "target", "")
    assert not value_of(page, "found")
    assert page.get_log("browser") == []


def test_steps_are_shown_and_played(browser):
    page = opened(browser, "units.html", "#a=1+2+3+4&b=0.5+0.5+0.5+0.5&c=100&filter=v100&unit=nvidia_v100_fp16")
    rows = rows_of(page, "trace")
    assert [row[4] for row in rows] == ["100.5", "101.5", "103", "105"] and [row[3] for row in rows] == [
        "0.5",
        "1",
        "1.5",
        "2",
    ]
    assert value_of(page, "sum-line") == "after 4 products: 105"
    change(page, "step", "2", "input")
    assert value_of(page, "sum-line") == "after 2 products: 101.5"
    page.execute_script("document.getElementById('play').click()")
    assert value_of(page, "sum-line") == "after 1 products: 100.5"
    change(page, "distribution", "wide")
    page.execute_script("document.getElementById('draw').click()")
    assert len(rows_of(page, "trace")) == 16 and value_of(page, "error") == ""
    address = page.execute_script("return location.hash")
    before = rows_of(page, "results")
    assert rows_of(opened(browser, "units.html", address), "results") == before
    change(page, "a", "1 2 x")
    assert "is no number" in value_of(page, "error")


@pytest.mark.parametrize("width", [320])
def test_it_fits_a_phone(browser, width):
    window(browser, width)
    page = opened(browser, "units.html", "#unit=nvidia_v100_fp16")
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    window(browser, 1000)
