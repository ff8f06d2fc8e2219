"""The C library for simulators, called from Python."""

import ctypes
import subprocess

import numpy as np

import softnum as sn
from softnum.formats.modes import OVERFLOW_RULES, ROUNDING_MODES

ERROR = 1 << 63
ONES = 2**64 - 1
u64 = ctypes.c_uint64


#: an operation of one, two or three operands for each element; how many had no answer
LOOPS = """
#include <stdint.h>
typedef uint64_t u;
u each1(u (*f)(u, u, u, u, u *), u n, const u *a, const u *b, const u *c, u h, u m, const u *r, u *out, u *flags) {
    u bad = 0;
    for (u i = 0; i < n; i++) { out[i] = f(a[i], h, m, r[i], &flags[i]); bad += flags[i] >> 63; }
    return bad;
}
u each2(u (*f)(u, u, u, u, u, u *), u n, const u *a, const u *b, const u *c, u h, u m, const u *r, u *out, u *flags) {
    u bad = 0;
    for (u i = 0; i < n; i++) { out[i] = f(a[i], b[i], h, m, r[i], &flags[i]); bad += flags[i] >> 63; }
    return bad;
}
u each3(u (*f)(u, u, u, u, u, u, u *), u n, const u *a, const u *b, const u *c, u h, u m, const u *r, u *out,
        u *flags) {
    u bad = 0;
    for (u i = 0; i < n; i++) { out[i] = f(a[i], b[i], c[i], h, m, r[i], &flags[i]); bad += flags[i] >> 63; }
    return bad;
}
"""


class Dpi:
    """The library with Python's types: handles by text, flags as a second result, errors as ValueError."""

    def __init__(self, lib):
        self.lib = lib

    def format(self, text):
        function = self.lib.softnum_dpi_format
        function.restype = u64
        handle = function(text.encode())
        if handle == ONES:
            raise ValueError(self.message())
        return handle

    def message(self):
        return self.lib.softnum_dpi_message().decode()

    def call(self, name, *arguments, restype=u64, flags=0):
        function = getattr(self.lib, f"softnum_dpi_{name}")
        function.restype = restype
        raised = u64(flags)
        given = [a if isinstance(a, (ctypes.Array, ctypes.c_double)) else u64(int(a) & ONES) for a in arguments]
        result = function(*given, ctypes.byref(raised))
        if raised.value & ERROR:
            assert restype is not u64 or result == ONES
            raise ValueError(self.message())
        return result, raised.value

    def operate(self, name, codes, formats, mode=0, word=0, **options):
        return self.call(name, *codes, self.format(formats), mode, word, **options)

    def each(self, name, codes, formats, mode=0, words=None):
        """(results, flags), arrays of uint64, of operands that are arrays; ValueError where one has no answer."""
        n = len(codes[0])
        arrays = [np.ascontiguousarray(x, np.uint64) for x in codes]
        words = np.zeros(n, np.uint64) if words is None else np.ascontiguousarray(words, np.uint64)
        out, flags = np.zeros(n, np.uint64), np.zeros(n, np.uint64)
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in (arrays * 3)[:3]]
        function = ctypes.cast(getattr(self.lib, f"softnum_dpi_{name}"), ctypes.c_void_p)
        run = getattr(self.loops, f"each{len(codes)}")
        run.restype = u64
        last = [ctypes.c_void_p(x.ctypes.data) for x in (words, out, flags)]
        if run(function, u64(n), *pointers, u64(self.format(formats)), u64(mode), *last):
            raise ValueError(self.message())
        return out, flags


def mode_of(rounding="nearest_even", overflow=None, bits=0, before=False, inputs=False, results=None, nan=0):
    """A mode as softnum_dpi.h packs it."""
    rule = 0 if overflow is None else 1 + OVERFLOW_RULES[overflow]
    flush = {None: 0, "before": 1, "after": 2, "subnormal": 3}[results]
    packed = ROUNDING_MODES[rounding] | rule << 8 | before << 12 | inputs << 13 | flush << 14 | nan << 16
    return packed | bits << 24


def word_of(codes, bits):
    """A word of elements as the library takes it: 128 words of 32 bits."""
    whole = sum(int(c) << (i * bits) for i, c in enumerate(codes))
    return (ctypes.c_uint32 * 128)(*(whole >> (32 * i) & 0xFFFFFFFF for i in range(128)))


def finite(fmt, rng, n):
    """Codes of n finite values of a format."""
    values = sn.decode(np.array([rng.getrandbits(fmt.bits) for _ in range(4 * n)], fmt.storage_dtype), fmt)
    return sn.encode(values[np.isfinite(values)][:n], fmt)


def run(*command, cwd=None):
    """(exit code, all that it prints) of a command."""
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, encoding="utf-8", check=False)
    return done.returncode, done.stdout + done.stderr


def icarus(built, source, target):
    """Compile a bench for Icarus with the VPI module of a folder."""
    return run("iverilog", "-g2012", "-I", built, "-L", built, "-m", "softnum_vpi", "-o", target, source)
