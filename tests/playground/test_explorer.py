"""The playground's format explorer: its numbers are the package's, natively and in headless Chromium, and it works."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest

import softnum as sn
from softnum import reference as ref
from softnum.formats.modes import OVERFLOW_RULES, ROUNDING_MODES
from tests.support.c_library import number_of
from tests.support.playground import change, native, opened, rows_of, texts_in, value_of, window

FORMATS = [
    "binary16", "e4m3fn", "e5m2", "q4.4", "uq8.8", "e8m0fnu", "e2m1fn", "dlfloat16", "binary8p3se", "binary8p4uf",
    "binary64", "e15m40", "e4m3fnuz", "q10.-2",
]  # fmt: skip
FLAGS = {"inexact": 1, "underflow": 2, "overflow": 4, "divide by zero": 8, "invalid": 16, "no code": 0}


def typed(fmt, n: int, rng) -> list[tuple[str, Fraction]]:
    """Numbers as somebody types them, and what they are: about all of a format's range, ties, and what lies beside."""
    low, high = np.clip((fmt.span[0] - 3, fmt.span[1] + 3), -300, 300)
    cases = []
    for i in range(n):
        exponent = int(rng.integers(low, high + 1))
        value = Fraction(int(rng.integers(1, 2 ** int(rng.integers(1, 40))))) * Fraction(2) ** (exponent - 20)
        sign = "-" if rng.integers(2) else ""
        if i % 4 == 0:  # decimal digits
            text = f"{rng.integers(1, 10**9)}.{rng.integers(10**6)}e{int(exponent * 0.30103) - 8}"
        elif i % 4 == 1:  # a value of the format or the middle of two, or a little beside it
            code = int(rng.integers(0, 2 ** min(fmt.bits, 16)))
            number = ref.decode(code, fmt)
            if number.kind == "finite" and number.numerator:  # a Fraction has no -0
                value = Fraction(number.numerator, number.denominator)
            text = f"{value.numerator}*2^{-(value.denominator.bit_length() - 1)}"
        elif i % 4 == 2:
            text = f"{value.numerator}.{'0' * 30}1*2^{-(value.denominator.bit_length() - 1)}"
        else:
            text = f"0x{int(rng.integers(1, 2**31)):x}.{int(rng.integers(2**16)):04x}p{exponent - 30}"
        cases.append((sign + text, read(sign + text)))
    return cases


def read(text: str) -> Fraction:
    """The number that a text is."""
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text)
    if text.startswith("0x"):
        digits, power = text[2:].split("p")
        whole, _, part = digits.partition(".")
        return sign * Fraction(int(whole + part, 16), 16 ** len(part)) * Fraction(2) ** int(power)
    number, _, power = text.partition("*2^")
    return sign * Fraction(number) * Fraction(2) ** int(power or 0)


def signed(value) -> Fraction:
    """The reference's finite value as a number."""
    return Fraction(value.numerator, value.denominator) * (-1 if value.sign else 1)


def rounding_cases(names, count: int):
    """Requests, and for each what the reference makes of it in each mode."""
    for name in names:
        fmt, rng = sn.format(name), np.random.default_rng(number_of(name))
        for i, (text, value) in enumerate(typed(fmt, count, rng)):
            rule = fmt.overflow_rules[i % len(fmt.overflow_rules)]
            if rule == "wrap" and "e" in text and abs(value) > 2**100:
                rule = "saturate"  # too many digits to wrap
            r, word = int(rng.integers(1, 33)), int(rng.integers(2**32))
            tiny, flush = i % 2, i % 3
            request = ("round", name, text, f"0,{OVERFLOW_RULES[rule] + 1},{r},{tiny},{flush}", f"{word:x}")
            options = {"overflow": rule, "tininess": ("after", "before")[tiny], "stochastic_bits": r}
            options |= {"random_bits": word, "flush_results": (None, "before", "after")[flush]}
            yield request, [ref.encode(value, fmt, rounding=mode, **options) for mode in ROUNDING_MODES]


def check_roundings(texts, names, count: int) -> int:
    """Compare; returns how many results there were."""
    cases, compared = rounding_cases(names, count), 0
    while part := list(islice(cases, 500)):
        for (request, want), text in zip(part, texts([request for request, _ in part]), strict=True):
            got = json.loads(text)
            assert "modes" in got, (request, got)
            for mode, told, (code, flags) in zip(ROUNDING_MODES, got["modes"], want, strict=True):
                said = sum(FLAGS[name] for name in told["flags"])
                assert (told["mode"], int(told["code"], 16), said) == (mode, code, int(flags)), (request, mode, told)
                compared += 1
    return compared


def check_codes(texts, name: str, codes) -> None:
    """Values, neighbours and bits of codes."""
    fmt = sn.format(name)
    answers = [json.loads(text) for text in texts([("code", name, f"{code:x}") for code in codes])]
    dtype = fmt.storage_dtype
    for way, function in (("up", sn.next_up), ("down", sn.next_down)):
        beside = np.asarray(function(np.array(codes, dtype), fmt))
        for code, answer, want in zip(codes, answers, beside, strict=True):
            if way in answer:
                assert int(answer[way]["code"], 16) == int(want), (name, hex(code), way)
    for code, answer in zip(codes, answers, strict=True):
        assert answer["bits"] == f"{code:0{fmt.bits}b}" and int(answer["code"], 16) == code
        want = ref.decode(int(code), fmt)
        minus = "-" if want.sign and want.kind != "nan" else ""
        if want.kind != "finite":
            assert answer["value"] == minus + want.kind, (name, hex(code), answer)
            continue
        assert answer["value"].startswith("-") == bool(minus)
        assert read(answer["value"]) == signed(want), (name, hex(code), answer)
        assert answer["kind"] == "zero" or read(answer["power"]) == signed(want)
        places, here = [n["at"] for n in answer["line"]], answer["line"][answer["here"]]
        assert places == sorted(places) and (int(here["code"], 16) == code or answer["kind"] == here["kind"] == "zero")


@pytest.fixture
def page(browser):
    """The explorer, on a screen."""
    window(browser, 1000)
    yield opened(browser, "index.html")
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_typed_is_rounded_exactly_in_every_mode(name):
    assert check_roundings(native().texts, [name], 24) == 24 * len(ROUNDING_MODES)


@pytest.mark.parametrize("name", FORMATS)
def test_codes_are_their_values_and_neighbours(name):
    rng, bits = np.random.default_rng(number_of(name)), sn.format(name).bits
    codes = range(2**bits) if bits <= 8 else [int(c) >> (64 - bits) for c in rng.integers(0, 2**64, 60, np.uint64)]
    check_codes(native().texts, name, codes)
    top = 1 << (bits - 1)
    check_codes(native().texts, name, [0, 1, top, top - 1, top | 1, 2 * top - 1])


def test_formats_by_parameters_are_those_by_name():
    for name in ("e4m3fn", "binary16", "e4m3fnuz", "e8m0fnu"):
        f = sn.format(name)
        nans = {"ieee": 0, "all_ones": 1, "negative_zero": 2, "none": 3}[f.nan_codes]
        lowest = ["subnormal", "normal", "zero"].index(f.lowest_binade)
        facts = [f.exponent_bits, f.mantissa_bits, f.bias, f.signed, nans, f.infinities, f.negative_zero, f.has_zero]
        facts += [lowest, f.saturating]
        own = "float:" + ",".join(str(int(x)) for x in facts)
        for request in (("code", "3"), ("round", "0.3"), ("round", "1e9")):
            given = native().texts([(request[0], spec, request[1]) for spec in (name, own)])
            assert given[0] == given[1]
    assert native().ask("code", "fixed:4,4,1", "18") == native().ask("code", "q4.4", "18")


def test_chances_of_stochastic_rounding_are_counts_of_words():
    told = native().ask("round", "e5m2", "1.1", "0,0,8,0,0", "0")["modes"][ROUNDING_MODES["stochastic"]]
    options = {"rounding": "stochastic", "stochastic_bits": 8}
    codes = [int(ref.encode(Fraction("1.1"), "e5m2", random_bits=w, **options)[0]) for w in range(256)]
    assert {int(o["code"], 16): o["count"] for o in told["outcomes"]} == {c: codes.count(c) for c in set(codes)}


@pytest.mark.parametrize(
    ("request_", "match"),
    [
        (("format", "e99m9"), "unknown format"), (("format", "float:4,3"), "10 numbers"), (("format", ""), "unknown"),
        (("format", "float:40,3,7,1,0,1,1,1,0,0"), "40 exponent bits"), (("format", "fixed:60,60,1"), "60 integer"),
        (("code", "e5m2", "100"), "above the format's width"), (("code", "e5m2", "zz"), "no hexadecimal"),
        (("code", "e5m2", "1", "8"), "from 0 to 7"), (("round", "e5m2", "1e99999"), "powers of ten"),
        (("round", "e5m2", "one"), "is no number"), (("round", "e5m2", ""), "is no number"),
        (("round", "e5m2", "1" * 2001), "at most 2000"), (("round", "e5m2", "1", "0,4,8,0,0"), "no rule of overflow"),
        (("round", "e5m2", "1", "0,0,33,0,0"), "1 to 32"), (("round", "e5m2", "1", "", "123456789"), "than 32 bits"),
        (("round", "q4.4", "1.1e90", "0,4,8,0,0"), "saturate"), (("table", "binary16"), "up to 8"),
        (("nonsense",), "unknown command"), (("format", "x" * 300), "is no format"),
    ],
)  # fmt: skip
def test_errors_say_what_is_wrong(request_, match):
    assert match in native().ask(*request_)["error"]


def test_the_page_computes_the_same_bits(page):
    texts = texts_in(page)
    requests = [request for request, _ in rounding_cases(FORMATS, 16)]
    requests += [("code", name, f"{code:x}") for name in ("e4m3fn", "binary8p3se", "q4.4") for code in range(256)]
    requests += [("format", name) for name in FORMATS]
    assert texts(requests) == native().texts(requests)
    assert check_roundings(texts, ["e4m3fn", "binary16"], 8) == 2 * 8 * len(ROUNDING_MODES)


@pytest.mark.slow
def test_the_page_computes_the_same_bits_of_thousands(page):
    texts = texts_in(page)
    assert check_roundings(texts, FORMATS, 300) == 300 * len(FORMATS) * len(ROUNDING_MODES)
    for name in FORMATS:
        bits = sn.format(name).bits
        rng = np.random.default_rng(number_of(name))
        check_codes(texts, name, [int(c) >> (64 - bits) for c in rng.integers(0, 2**64, 500, np.uint64)])


def test_one_flips_bits_and_walks_by_keyboard(page):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    change(page, "format", "binary16")
    assert value_of(page, "value") == "1" and page.execute_script("return code") == "3c00"
    bits = page.find_elements(By.CSS_SELECTOR, "#bits button")
    assert len(bits) == 16 and [b.get_attribute("class") for b in bits[:2]] == ["sign", "exponent"]
    bits[0].click()
    assert value_of(page, "value") == "-1"
    page.switch_to.active_element.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.SPACE)
    assert page.execute_script("return code") == "9c00" and value_of(page, "value") == "-0.00390625"
    page.find_element(By.ID, "up").click()
    assert page.execute_script("return code") == "9bff"
    change(page, "code", "7e00")
    assert value_of(page, "value") == "nan"
    change(page, "code", "12345")
    assert "above the format's width" in value_of(page, "error")
    change(page, "code", "0001")
    assert read(value_of(page, "value")) == Fraction(1, 2**24)


def test_every_rounding_of_what_one_types_is_shown(page):
    change(page, "format", "e5m2")
    change(page, "number", "-1.1", "input")
    rows = rows_of(page, "roundings")
    assert [row[0] for row in rows] == list(ROUNDING_MODES)
    for mode, code, value, flags, _ in rows:
        options = {"stochastic_bits": 8, "random_bits": 0x80}
        want, raised = ref.encode(Fraction("-1.1"), "e5m2", rounding=mode, **options)
        assert (int(code, 16), read(value), flags) == (want, signed(ref.decode(want, "e5m2")), "inexact") and raised
    change(page, "number", "what", "input")
    assert "is no number" in value_of(page, "error")
    change(page, "number", "inf", "input")
    assert not page.execute_script("return document.getElementById('error').textContent")


def test_formats_by_parameters_and_from_the_file(page):
    from selenium.webdriver.common.by import By

    page.execute_script("document.getElementById('own').open = true")
    page.find_element(By.CSS_SELECTOR, "#float button").click()
    assert page.execute_script("return format") == "float:4,3,7,1,0,1,1,1,0,0" and value_of(page, "value") == "1"
    change(page, "named", "e7m8")
    assert page.execute_script("return facts.bits") == 16
    change(page, "format", "posit8")
    assert "written by the Python package" in value_of(page, "source")
    want = np.asarray(sn.decode(np.arange(256, dtype=np.uint8), "posit8"))
    given = page.execute_script("return SOFTNUM_DATA.tables.posit8.codes.map((c) => c.value)")
    np.testing.assert_array_equal([float(text) for text in given], want)
    page.find_element(By.CSS_SELECTOR, "#bits button").click()  # of 1, its sign: two's complement, so -1 is 0xc0
    assert page.execute_script("return code") == "c0" and value_of(page, "value") == f"{want[0xC0]:g}"
    page.execute_script("document.getElementById('all').open = true")
    page.execute_script("document.getElementById('all').dispatchEvent(new Event('toggle'))")
    assert len(page.find_elements(By.CSS_SELECTOR, "#codes button")) == 256


def test_a_link_shows_the_same(browser):
    window(browser, 1000)
    page = opened(browser, "index.html", "#format=q4.12&code=8001&number=9.5&r=4&word=f&overflow=4")
    assert page.execute_script("return [format, code]") == ["q4.12", "8001"]
    first = page.execute_script("return document.querySelector('#roundings tbody td').textContent")
    assert int(first, 16) == ref.encode(Fraction("9.5"), "q4.12", overflow="wrap")[0]
    address = page.execute_script("return location.hash")
    again = opened(browser, "index.html", address)
    assert again.execute_script("return location.hash") == address
    wrong = opened(browser, "index.html", "#format=e99m9")
    assert "unknown format" in value_of(wrong, "error") and value_of(wrong, "value") == "1"


@pytest.mark.parametrize("width", [320, 412])
def test_it_fits_a_phone_and_everything_is_named(browser, width):
    window(browser, width)
    page = opened(browser, "index.html", "#format=binary32&number=0.1")
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    unnamed = page.execute_script(
        """return [...document.querySelectorAll("input, select, button, textarea, svg, table")].filter((e) =>
        !(e.labels && e.labels.length) && !e.getAttribute("aria-label") && !e.caption && !e.textContent.trim())
        .map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert unnamed == []
