"""User C runs in a child process first: crashes, hangs and changing answers are found there, with their operands."""

import numpy as np
import pytest

from softnum.formats.custom.compiler import compile_c, preprocess
from softnum.formats.custom.trial import Call, sample_codes, sample_floats, try_out
from softnum.runtime.caching import cache_folder

EXPORT = "#pragma GCC visibility push(default)\n#include <stdlib.h>\n#include <stdint.h>\n"
LOOP = (
    "void f(int64_t n, const uint8_t *a, const uint8_t *b, uint8_t *out) {{ for (int64_t i = 0; i < n; i++) {{ {} }} }}"
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTNUM_CACHE", str(tmp_path / "cache"))


def tried(body, timeout=20.0, operands=lambda: sample_codes(8, 8)):
    library = compile_c(preprocess(EXPORT + LOOP.format(body)))
    try_out(library, [Call("f", operands, np.uint8, "f(new_fp, new_fp)", "mine.c:7")], timeout=timeout)
    return library


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("out[i] = 1; if (a[i] == 0x81 && b[i] == 0xfe) abort();", r"mine.c:7\) crashes \(SIGABRT\) on 0x81, 0xfe$"),
        ("out[i] = a[i] / (b[i] - 0x80);", r"f\(new_fp, new_fp\) \(mine.c:7\) crashes \(SIGFPE\) on 0x00, 0x80$"),
        ("static int n; out[i] = n++;", r"is not deterministic on 0x\w\w, 0x\w\w: it returned \d+, then \d+;"),
        (
            "if (a[i]) out[i] = 3;",
            "is not deterministic on 0x00, 0x00: it returned 165, then 90; a result must depend on the operands only",
        ),
        ("out[i] = 1; if (a[i] == 3) exit(0);", r"ends the process on operands \d+ to \d+ of the trial$"),
    ],
)
def test_what_is_wrong_is_named(body, message):
    with pytest.raises(ValueError, match=message):
        tried(body)


def test_a_loop_without_end():
    with pytest.raises(ValueError, match=r"does not come back within 0.5 s on 0x42, 0x00$"):
        tried("out[i] = 0; volatile int stay = a[i] == 0x42; while (stay) ;", timeout=0.5)


def test_what_passes_is_not_tried_again():
    calls = []

    def operands():
        calls.append(1)
        return sample_codes(8, 8)

    for _ in range(2):
        library = tried("out[i] = a[i] + b[i];", operands=operands)
    assert calls == [1]
    assert library.parent == cache_folder() / "c" and library.with_suffix(".passed").is_file()


def test_what_user_code_prints_is_no_answer(capfd):
    tried('if (i == 0) puts("[]"); out[i] = a[i];'.replace("puts", "__builtin_puts"))
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("bits", [(8,), (16,), (5, 11), (17,), (16, 16), (8, 8, 8), (64,), (33, 64)])
def test_samples_of_codes(bits):
    operands = sample_codes(*bits)
    count = 1 << sum(bits) if sum(bits) <= 16 else 10**6
    assert [a.shape for a in operands] == [(count,)] * len(bits)
    for a, n in zip(operands, bits, strict=True):
        assert int(a.max()) == (1 << n) - 1 and int(a.min()) == 0
    assert all(np.array_equal(a, b) for a, b in zip(operands, sample_codes(*bits), strict=True))
    if sum(bits) <= 16:
        assert len(set(zip(*(a.tolist() for a in operands), strict=True))) == count


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_samples_of_floats(dtype):
    x = sample_floats(dtype)
    assert x.dtype == dtype and x.size == 10**6
    assert np.isnan(x).any() and {np.inf, -np.inf, 0.0, 1.0, -2.5} <= set(x[: 1 << 16].tolist())
