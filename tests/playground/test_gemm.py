"""The playground's lab of errors: its histograms are what softnum.matmul and NumPy make of the same numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest

import softnum as sn
from softnum.formats.modes import ROUNDING_MODES
from tests.support.playground import change, native, opened, texts_in, value_of, window
from tests.support.playground_sums import DISTRIBUTIONS, UNITS, build, drawn

OWN = {
    "kind=0;a=e4m3fn;b=e4m3fn;accumulator=e6m9": sn.MadUnit("e6m9", operand="e4m3fn"),
    "kind=0;a=e5m2;b=e4m3fn;accumulator=e6m9;product=e5m7;rounding=5;chunk=16;result=binary32": sn.MadUnit(
        "e6m9",
        operand=("e5m2", "e4m3fn"),
        product="e5m7",
        rounding="toward_zero",
        chunk=16,
        outer_accumulator="binary32",
    ),
    f"kind=0;a=binary16;b=binary16;accumulator=bfloat16;lanes=4;rounding={ROUNDING_MODES['stochastic']}": sn.MadUnit(
        "bfloat16", operand="binary16", lanes=4, rounding="stochastic"
    ),
    "kind=1;a=e4m3fn;b=e4m3fn;accumulator=bfloat16": sn.ExactDotUnit("bfloat16", operand="e4m3fn"),
}


def errors_by_package(unit, m, n, k, distribution, seed):
    """Everything that the lab shows."""
    a, b = (
        sn.array(sn.quantize(drawn(distribution, seed, i, size), fmt).reshape(shape), fmt)
        for i, (size, shape, fmt) in enumerate(
            ((m * k, (m, k), unit.operand[0]), (k * n, (k, n), unit.operand[1]))
        )
    )  # fmt: skip
    stochastic = {"key": 0} if "stochastic" in str(getattr(unit, "rounding", "")) else {}
    got = np.asarray(sn.matmul(a, b, unit, **stochastic), np.float64).ravel()
    exact = np.asarray(sn.matmul(a, b, sn.ExactDotUnit("binary64", operand=unit.operand)), np.float64).ravel()
    with np.errstate(all="ignore"):
        error = (got - exact) / np.abs(exact)
    counted = (got == exact) | np.isfinite(error)
    wrong = counted & (got != exact)
    signed = error[wrong]
    bins = np.clip(np.frexp(np.abs(signed))[1] - 1, -64, 8)
    total = [float(np.add.accumulate(np.r_[0.0, x])[-1]) / counted.sum() for x in (np.abs(signed), signed)]
    return {
        "results": m * n, "exact": int((got == exact).sum()), "special": int((~counted).sum()),
        "stats": [*total, float(np.abs(signed).max(initial=0))],
        "bins": {int(e): int((bins == e).sum()) for e in np.unique(bins)},
    }  # fmt: skip


def check_errors(texts, cases) -> None:
    requests = [("gemm", spec, *sizes, distribution, seed) for spec, _, sizes, distribution, seed in cases]
    for (spec, unit, sizes, distribution, seed), text in zip(cases, texts(requests), strict=True):
        got = json.loads(text)
        want = errors_by_package(unit, *sizes, distribution, seed)
        assert {name: got[name] for name in ("results", "exact", "special")} == {
            name: want[name] for name in ("results", "exact", "special")
        }, spec
        assert {b["exponent"]: b["count"] for b in got["bins"] if b["count"]} == want["bins"], spec
        if want["special"] < want["results"]:
            assert [float(got[name]) for name in ("mean", "bias", "largest")] == want["stats"], spec


def cases_of(names, sizes=((3, 5, 40), (1, 1, 1), (7, 2, 129))):
    units = list(OWN.items())
    units += [(build.spec_of(UNITS[name]), UNITS[name]) for name in names if "int" not in name and "b1" not in name]
    for i, (spec, unit) in enumerate(units):
        yield spec, unit, sizes[i % len(sizes)], DISTRIBUTIONS[i % len(DISTRIBUTIONS)], i


def test_errors_are_those_of_the_package():
    check_errors(native().texts, list(cases_of(list(UNITS)[::6])))
    check_errors(native().texts, [(spec, u, (16, 16, 64), d, 3) for spec, u in OWN.items() for d in DISTRIBUTIONS])


@pytest.mark.parametrize(
    ("request_", "match"),
    [
        (("0", "1", "1", "bell", "1"), "rows"), (("1", "513", "1", "bell", "1"), "columns"),
        (("512", "512", "512", "bell", "1"), "more than"), (("1", "1", "70000", "bell", "1"), "from 1 to 65536"),
        (("1", "1", "1", "x", "1"), "unknown distribution"), (("1", "1", "1", "bell", ""), "seed"),
    ],
)  # fmt: skip
def test_errors_say_what_is_wrong(request_, match):
    assert match in native().ask("gemm", next(iter(OWN)), *request_)["error"]
    assert "accumulator is null" in native().ask("gemm", "a=e5m2;b=e5m2", "1", "1", "1", "bell", "1")["error"]


def test_the_page_counts_the_same(browser):
    page = opened(browser, "gemm.html")
    requests = [("gemm", spec, *sizes, d, seed) for spec, _, sizes, d, seed in cases_of(list(UNITS)[::6])]
    assert texts_in(page)(requests) == native().texts(requests)


@pytest.mark.slow
def test_the_page_counts_the_same_of_every_unit(browser):
    page = opened(browser, "gemm.html")
    check_errors(texts_in(page), list(cases_of(UNITS, ((17, 9, 200), (32, 32, 64)))))


def test_histograms_are_shown_and_kept(browser):
    window(browser, 1000)
    page = opened(browser, "gemm.html", "#m=8&n=8&k=32&unit=nvidia_v100_fp16&seed=2&distribution=wide")
    captions = "return [...document.querySelectorAll('figcaption')].map((c) => c.textContent)"
    assert page.execute_script(captions) == ["nvidia_v100_fp16: 8 x 8, sums of 32, wide, seed 2"]
    want = errors_by_package(UNITS["nvidia_v100_fp16"], 8, 8, 32, "wide", 2)
    titles = page.execute_script("return [...document.querySelectorAll('svg title')].map((t) => t.textContent)")
    shown = {int(t.split(":")[0][2:]): int(t.split(":")[1]) for t in titles}
    assert {e: n for e, n in shown.items() if n} == want["bins"]
    page.execute_script("document.getElementById('keep').click()")
    change(page, "unit", "")
    change(page, "own-accumulator", "e5m3")
    page.execute_script("document.getElementById('run').click()")
    assert len(page.execute_script(captions)) == 2
    address, before = page.execute_script("return location.hash"), page.execute_script(captions)[0]
    assert opened(browser, "gemm.html", address).execute_script(captions) == [before]
    change(page, "own-accumulator", "nonsense")
    page.execute_script("document.getElementById('run').click()")
    assert "unknown format 'nonsense'" in value_of(page, "error")
    window(browser, 320)
    assert page.execute_script("return document.documentElement.scrollWidth") <= 320
    window(browser, 1000)
