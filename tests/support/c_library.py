"""The C library (csrc/softnum.h) as `make lib` builds it, called through ctypes on NumPy arrays."""

from __future__ import annotations

import ctypes as ct
import shutil
import subprocess
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import softnum as sn
from softnum.formats.modes import OVERFLOW_RULES, ROUNDING_MODES

__all__ = [
    "FLUSHES", "NONE", "ROOT", "Failed", "Library", "codes_of", "library", "made", "number_of", "rules", "same",
]  # fmt: skip

ROOT = Path(__file__).resolve().parents[2]
ARCHIVE = ROOT / "build" / "objects" / "libsoftnum.a"
NONE = -(2**31)
NO_CODE = 3
FLUSHES = {None: 0, "before": 1, "after": 2, "subnormal": 3}
_OVERFLOWS = {None: 0, "always_infinity": 5} | {name: rule + 1 for name, rule in OVERFLOW_RULES.items()}
_PROFILES = {"canonical": 0, "x86": 1, "arm": 2}
_INTS = dict.fromkeys(
    ("rounding", "overflow", "stochastic_bits", "tiny_before", "flush_inputs", "flush_results", "nan")
)


def _struct(name: str, *fields) -> type[ct.Structure]:
    return type(name, (ct.Structure,), {"_fields_": [("size", ct.c_size_t), *fields]})


Float = _struct("Float", *((n, ct.c_int32) for n in (
    "exponent_bits", "mantissa_bits", "bias", "is_signed", "nans", "infinities", "negative_zero", "has_zero", "field_0",
    "saturating",
)))  # fmt: skip
Rules = _struct("Rules", *((n, ct.c_int32) for n in _INTS), ("invalid_code", ct.c_uint64))
Random = _struct("Random", *((n, ct.c_uint64) for n in ("seed", "stream", "first")), ("words", ct.c_void_p))
UnitFacts = _struct(
    "UnitFacts", ("kind", ct.c_int32),
    *((n, ct.c_void_p) for n in ("a", "b", "accumulator", "result", "rules", "product")),
    *((n, ct.c_int32) for n in ("product_rounding", "lanes", "reduction", "compensated")), ("chunk", ct.c_int64),
    *((n, ct.c_int32) for n in ("terms", "fraction_bits", "min_exponent", "zero_exponent", "truncate_fraction")),
)  # fmt: skip
Product = _struct(
    "Product", *((n, ct.c_size_t) for n in "mnk"), *((n, ct.c_void_p) for n in ("a", "b", "c", "out")),
    *((n, ct.c_size_t) for n in ("lda", "ldb", "ldc", "ldo")), ("seed", ct.c_uint64), ("stream", ct.c_uint64),
    *((n, ct.c_uint32) for n in ("batch", "first_row", "first_column")),
)  # fmt: skip


class Failed(Exception):
    """A status that is not SOFTNUM_OK, and its text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def made(struct: type[ct.Structure], /, **fields):
    """A struct of these fields, its size set."""
    return struct(size=ct.sizeof(struct), **fields)


def rules(rounding="nearest_even", overflow=None, stochastic_bits=32, tininess="after", flush_inputs=False,
          flush_results=None, nan="canonical", invalid_code=0):  # fmt: skip
    """softnum_rules as Python's keywords have them."""
    return made(
        Rules, rounding=ROUNDING_MODES[rounding], overflow=_OVERFLOWS[overflow],
        stochastic_bits=stochastic_bits, tiny_before=int(tininess == "before"), flush_inputs=int(flush_inputs),
        flush_results=FLUSHES[flush_results], nan=_PROFILES[nan], invalid_code=invalid_code,
    )  # fmt: skip


def _random(key, words):
    if words is not None:
        return made(Random, words=words.ctypes.data)
    seed, stream, first = (*key, 0, 0)[:3] if isinstance(key, tuple) else (key or 0, 0, 0)
    return made(Random, seed=seed, stream=stream, first=first)


class Library:
    """softnum.h, its errors as exceptions; formats by their names."""

    def __init__(self, path: Path) -> None:
        self.c = ct.CDLL(str(path))
        self.c.softnum_version.restype = self.c.softnum_status_text.restype = ct.c_char_p
        self.c.softnum_operation_name.restype = ct.c_char_p
        self.c.softnum_operation_name.argtypes = [ct.c_size_t, ct.c_void_p]
        self.c.softnum_format_bytes.restype = ct.c_size_t
        self.c.softnum_format_bytes.argtypes = [ct.c_void_p]
        self.c.softnum_random_words.argtypes = [ct.c_uint64, ct.c_uint64, ct.c_uint64, ct.c_void_p, ct.c_size_t]
        self.formats, self.cpu = {}, None

    def call(self, name: str, *args, allow=()) -> int:
        """The status, if it is SOFTNUM_OK or allowed."""
        why = ct.create_string_buffer(256)
        # c_size_t for plain integers: all of the functions' are
        status = getattr(self.c, f"softnum_{name}")(*(ct.c_size_t(x) if type(x) is int else x for x in args), why)
        if status and status not in allow:
            raise Failed(status, why.value.decode())
        assert bool(status) == bool(why.value)
        return status

    def make(self, name: str, *args):
        """The object that a function makes; it lives as long as the process."""
        made_ = ct.c_void_p(1)
        try:
            self.call(name, *args, ct.byref(made_))
        except Failed:
            assert made_.value is None
            raise
        return made_

    def format(self, fmt):
        """The handle of a format by its name."""
        name = str(fmt)
        if name not in self.formats:
            named = self.make("format_named", name.encode())
            self.formats[name] = named if self.cpu is None else self.make("format_on", named, self.cpu.encode())
        return self.formats[name]

    @contextmanager
    def on(self, cpu: str):
        """Within, formats that are asked for by name run on this instruction set."""
        kept, self.formats, self.cpu = self.formats, {}, cpu
        try:
            yield
        finally:
            self.formats, self.cpu = kept, None

    def width(self, fmt) -> np.dtype:
        """NumPy's type of codes."""
        return np.dtype(f"u{self.c.softnum_format_bytes(self.format(fmt))}")

    def rounded(self, what: str, x, fmt, key=None, words=None, flags=False, allow=(), **options):
        """quantize or encode; with flags a pair."""
        x = np.ascontiguousarray(x)
        rounder = self.make("rounder_new", self.format(fmt), ct.byref(rules(**options)))
        out = np.empty(x.shape, x.dtype if what == "quantize" else self.width(fmt))
        raised = np.zeros(x.shape, np.uint8)
        random = _random(key, words)
        extra = () if what == "quantize" else (ct.c_void_p(raised.ctypes.data if flags else None),)
        name = f"{what}_f{8 * x.itemsize}"
        args = rounder, ct.c_void_p(x.ctypes.data), ct.c_void_p(out.ctypes.data), *extra, x.size, ct.byref(random)
        try:
            self.call(name, *args, allow=allow)
        finally:
            self.c.softnum_rounder_free(rounder)
        return (out, raised) if flags else out

    def decode(self, codes, fmt, dtype=np.float64):
        """Values of codes."""
        codes = np.ascontiguousarray(codes, self.width(fmt))
        out = np.empty(codes.shape, dtype)
        name = f"decode_f{8 * out.itemsize}"
        self.call(name, self.format(fmt), ct.c_void_p(codes.ctypes.data), ct.c_void_p(out.ctypes.data), codes.size)
        return out

    def operate(self, name, codes, formats, out_fmt, key=None, words=None, flags=True, allow=(), **options):
        """(codes, flags) of an operation."""
        codes = [np.ascontiguousarray(c, self.width(f)) for c, f in zip(codes, formats, strict=True)]
        handles = (ct.c_void_p * len(formats))(*(self.format(f).value for f in formats))
        operation = self.make("operation_new", name.encode(), handles, self.format(out_fmt), ct.byref(rules(**options)))
        out, raised = np.empty(codes[0].shape, self.width(out_fmt)), np.zeros(codes[0].shape, np.uint8)
        arrays, random = (ct.c_void_p * len(codes))(*(c.ctypes.data for c in codes)), _random(key, words)
        self.call(
            "operate", operation, arrays, ct.c_void_p(out.ctypes.data),
            ct.c_void_p(raised.ctypes.data if flags else None), out.size, ct.byref(random), allow=allow,
        )  # fmt: skip
        self.c.softnum_operation_free(operation)
        return out, raised

    def unit(self, kind: int, a, b, accumulator, given=None, **facts):
        """A unit; formats by name."""
        fields = dict(product_rounding=NONE, lanes=1, terms=1, fraction_bits=23, min_exponent=NONE, zero_exponent=NONE,
                      truncate_fraction=NONE)  # fmt: skip
        given = rules(**given) if given else None
        for name in ("result", "product"):
            if facts.get(name) is not None:
                facts[name] = self.format(facts[name])
        unit = made(
            UnitFacts, kind=kind, a=self.format(a), b=self.format(b), accumulator=self.format(accumulator),
            rules=ct.cast(ct.pointer(given), ct.c_void_p) if given else None, **(fields | facts),
        )  # fmt: skip
        return self.make("unit_new", ct.byref(unit))

    def product(self, unit, a, b, c, result, key=0, function="gemm", part=(0, 0, 0), strides=(0, 0, 0, 0), allow=()):
        """Codes of a product, or of a trace."""
        m, k, n = *a.shape, b.shape[1]
        out = np.empty((m, n) if function == "gemm" else k, self.width(result))
        seed, stream = key if isinstance(key, tuple) else (key, 0)
        p = made(
            Product, m=m, n=n, k=k, a=a.ctypes.data, b=b.ctypes.data, c=None if c is None else c.ctypes.data,
            out=out.ctypes.data, lda=strides[0], ldb=strides[1], ldc=strides[2], ldo=strides[3], seed=seed,
            stream=stream, batch=part[0], first_row=part[1], first_column=part[2],
        )  # fmt: skip
        extra = () if function == "gemm" else (ct.c_void_p(out.ctypes.data),)
        self.call(function, unit, ct.byref(p), *extra, allow=allow)
        return out


@cache
def library() -> Library:
    """The library, linked of what the extensions were; a test without it is skipped."""
    if not ARCHIVE.exists() or shutil.which("make") is None or shutil.which("cc") is None:
        pytest.skip("needs make, a C compiler and a build of softnum in this checkout")
    done = subprocess.run(
        ["make", "-s", "lib", "CORE=build/objects/libsoftnum.a"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return Library(ROOT / "build" / "clib" / "libsoftnum.so")


def number_of(text: str) -> int:
    """A number of a text, the same in each process."""
    return sum(map(ord, text))


def codes_of(fmt, n: int, rng) -> np.ndarray:
    """Random codes, the edges among them."""
    fmt = sn.format(fmt)
    codes = rng.integers(0, 2**64, n, np.uint64) >> np.uint64(64 - fmt.bits)
    edges = np.array([0, 1, 2, 3, *(2**fmt.bits - d for d in (1, 2, 3)), 2 ** (fmt.bits - 1)], np.uint64)
    codes[: edges.size] = edges & np.uint64(2**fmt.bits - 1)
    return codes.astype(fmt.storage_dtype)


def same(got, want, what: str) -> None:
    """Equal bits, types and shapes."""
    want = np.ascontiguousarray(want)
    got = got.view(f"u{got.itemsize}") if got.dtype.kind == "f" else got
    want = want.view(f"u{want.itemsize}") if want.dtype.kind == "f" else want
    assert got.dtype == want.dtype and got.shape == want.shape, what
    got, want = got.ravel(), want.ravel()
    at = np.flatnonzero(got != want)
    assert at.size == 0, f"{what}: {at.size} differ, at {at[:3]}: {got[at[:3]]} instead of {want[at[:3]]}"
