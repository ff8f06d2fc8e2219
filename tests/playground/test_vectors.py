"""The playground's vectors: softnum vectors check finds nothing wrong with them, whatever is picked."""

from __future__ import annotations

import subprocess
import sys

import pytest

import softnum as sn
from tests.support.playground import change, native, opened, texts_in, value_of, window
from tests.support.playground_sums import build

CASES = [
    ("multiply", "e4m3fn", "", "0,0,32,0,0", 0, 0), ("add", "binary16", "", "7,0,32,1,0", 500, 3),
    ("fma", "e5m2", "e4m3fn", "5,2,32,0,0", 700, 1), ("divide", "q4.4", "", "0,0,32,0,0", 300, 2),
    ("convert", "e6m9", "e4m3fnuz", "9,0,32,0,0", 0, 0), ("sqrt", "binary8p3se", "", "0,0,32,0,0", 0, 0),
    ("add", "q4.4", "", "8,4,32,0,0", 300, 5), ("exp", "e2m1fn", "binary16", "6,0,32,0,0", 0, 0),
    ("remainder", "binary64", "", "0,0,32,0,0", 100, 9),
]  # fmt: skip


def check(texts: list[str], folder) -> None:
    """softnum vectors check on all of them at once."""
    for i, text in enumerate(texts):
        assert text.startswith("# softnum vectors 1"), text[:200]
        (folder / f"{i}.txt").write_text(text, encoding="ascii")
    files = [folder / f"{i}.txt" for i in range(len(texts))]
    command = [sys.executable, "-m", "softnum", "vectors", "check", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.count("all results and flags equal") == len(texts), (
        done.stdout + done.stderr
    )


def test_vectors_are_right(tmp_path):
    texts = native().texts([("vectors", *case) for case in CASES])
    assert [int(text.split("# vectors: ")[1].split()[0]) for text in texts[:2]] == [65536, 500]
    check(texts, tmp_path)


def test_every_operation_is_there():
    named = native().ask("operations")
    assert set(build.OPERATIONS) <= set(named)
    for name in build.OPERATIONS:
        text = native().texts([("vectors", name, "e5m2", "", "", 8, 1)])[0]
        assert text.count("\n") == 14 + 8 and f" {'abc'[named[name] - 1]}:8 result:8" in text, name


@pytest.mark.slow
def test_vectors_of_every_operation_are_right(tmp_path):
    formats = ["e4m3fn", "binary16", "binary8p4sf", "e2m1fn", "bfloat16"]
    requests = [
        ("vectors", name, formats[i % 5], "", f"{i % 10},0,32,{i % 2},0", 300, i)
        for i, name in enumerate(build.OPERATIONS)
    ]
    check(native().texts(requests), tmp_path)


@pytest.mark.parametrize(
    ("request_", "match"),
    [
        (("adds", "e5m2", "", "", 5, 1), "unknown operation"), (("add", "e99m9", "", "", 5, 1), "unknown format"),
        (("add", "e5m2", "", "10,0,32,0,0", 5, 1), "stochastic"), (("add", "e5m2", "", "", 70000, 1), "to 65536"),
        (("add", "binary16", "", "", 0, 1), "say how many"), (("add", "e5m2", "", "0,4,32,0,0", 5, 1), "no rule"),
        (("negate", "e5m2", "e4m3fn", "", 5, 1), "in the format of a"), (("add", "e5m2", "", "", "", 1), "how many"),
    ],
)  # fmt: skip
def test_errors_say_what_is_wrong(request_, match):
    assert match in native().ask("vectors", *request_)["error"]


def test_the_page_writes_the_same_file(browser):
    window(browser, 1000)
    page = opened(browser, "vectors.html", "#operation=fma&format=e5m2&count=50&seed=4&rounding=7")
    requests = [("vectors", *case) for case in CASES[1:]]
    assert texts_in(page)(requests) == native().texts(requests)
    [want] = native().texts([("vectors", "fma", "e5m2", "", "7,0,32,0,0", 50, 4)])
    assert want.startswith(value_of(page, "preview"))
    assert value_of(page, "said") == "op: fma, method: edges and random, vectors: 50"
    blob = page.execute_async_script(
        "const done = arguments[0], r = new FileReader(); r.onload = () => done(r.result);"
        "const real = URL.createObjectURL; URL.createObjectURL = (blob) => { r.readAsText(blob); return real(blob); };"
        "document.getElementById('generate').click()"
    )
    assert blob == want
    told = page.execute_script(
        "const a = document.getElementById('download'); return [a.download, a.hidden, a.protocol]"
    )
    assert told == ["fma-e5m2.txt", False, "blob:"]
    change(page, "format", "nothing")
    page.execute_script("document.getElementById('generate').click()")
    assert "unknown format 'nothing'" in value_of(page, "error")
    assert page.execute_script("return document.getElementById('download').hidden")
    window(browser, 320)
    assert page.execute_script("return document.documentElement.scrollWidth") <= 320
    assert sn.__version__ in page.execute_script("return document.querySelector('footer').textContent")
