"""What the pinned computations start from: fixed bits, the same on every machine and with every version of NumPy."""

from __future__ import annotations

import hashlib
import os

import numpy as np

import softnum as sn

__all__ = [
    "BLOCK_FORMATS", "FORMATS", "MODES", "MODE_FAMILIES", "THREADS", "codes", "custom_formats", "digest", "floats",
    "outcome", "small",
]  # fmt: skip

#: how many threads the pinned calls take; what they return does not depend on it
THREADS = int(os.environ.get("SOFTNUM_THREADS", "1"))

#: one of each kind and each lowest binade, set of specials, width of carrier
FORMATS = (
    "binary16", "bfloat16", "tf32", "binary32", "binary64", "dlfloat16", "e5m2", "e4m3", "e4m3fn", "e4m3fnuz",
    "e5m2fnuz", "e4m3b11fnuz", "e8m0fnu", "e3m2fn", "e2m3fn", "e2m1fn", "binary8p3se", "binary8p4uf", "binary8p1uf",
    "e6m9", "e8m20", "e11m40", "e2m9", "q4.4", "uq4.4", "q8.24", "q1.63", "q1.7",
)  # fmt: skip
BLOCK_FORMATS = ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4_e2m1", "mxint8", "nvfp4")
MODES = (
    "nearest_even", "nearest_away", "nearest_zero", "nearest_up", "nearest_down", "toward_zero", "away_from_zero", "up",
    "down", "to_odd", "stochastic", "stochastic_floor", "stochastic_fast", "stochastic_even", "stochastic_odd",
)  # fmt: skip
#: one of each family of rounding modes
MODE_FAMILIES = ("nearest_even", "nearest_away", "toward_zero", "up", "to_odd", "stochastic", "stochastic_even")


def custom_formats() -> dict:
    """A table without structure, and a posit by its values: formats that no exponent and mantissa describe."""
    levels = (-4096, -2852, -2151, -1617, -1165, -757, -373, 0, 326, 659, 1008, 1384, 1805, 2304, 2961, 4096)
    posit = [posit_value(code) for code in range(256)]
    return {
        "nf4": sn.CustomFormat.from_table([x / 4096 for x in levels], name="nf4"),
        "posit8": sn.CustomFormat.from_table(posit, name="posit8"),
    }


def posit_value(code: int, bits: int = 8, es: int = 1) -> float:
    """The value of a posit's code; NaN of NaR."""
    if code == 0:
        return 0.0
    if code == 1 << (bits - 1):
        return float("nan")
    sign = -1.0 if code >> (bits - 1) else 1.0
    body = (-code if sign < 0 else code) & ((1 << (bits - 1)) - 1)
    text = f"{body:0{bits - 1}b}"
    run = len(text) - len(text.lstrip(text[0]))
    regime = run - 1 if text[0] == "1" else -run
    rest = text[run + 1 :]
    exponent = int((rest[:es] or "0").ljust(es, "0"), 2)
    fraction = rest[es:]
    return sign * 2.0 ** (regime * 2**es + exponent) * (1 + (int(fraction, 2) / 2 ** len(fraction) if fraction else 0))


def _raw(n: int, seed: int) -> np.ndarray:
    """n words of 64 bits of Philox, whose stream NumPy keeps."""
    return np.random.Philox(key=seed).random_raw(n)


def codes(fmt, n: int, seed: int) -> np.ndarray:
    """n codes of a format, drawn from all."""
    bits = fmt.bits
    drawn = _raw(n, seed) >> np.uint64(64 - bits)
    if isinstance(fmt, sn.CustomFormat):
        drawn %= np.uint64(2**bits)
    return drawn.astype(fmt.storage_dtype)


def floats(dtype, n: int, seed: int) -> np.ndarray:
    """n floats: a half drawn from all codes, a half near 1 with every size from 2**-20 to 2**20."""
    dtype = np.dtype(dtype)
    words = _raw(n, seed)
    any_code = (words >> np.uint64(64 - 8 * dtype.itemsize)).astype(f"u{dtype.itemsize}").view(dtype)
    digits = (words & np.uint64(0xFFFFFFFF)).astype(np.int64) - 2**31
    size = (words >> np.uint64(58)).astype(np.int64) % 41 - 20
    with np.errstate(over="ignore"):
        near_one = np.ldexp(digits.astype(np.float64), (size - 31).astype(np.int32)).astype(dtype)
    return np.where(np.arange(n) % 2 == 0, any_code, near_one)


def small(shape, seed: int, size: int = 3) -> np.ndarray:
    """float32 values with 6 bits and exponents from -size to size, zeros among them."""
    words = _raw(int(np.prod(shape)), seed)
    digits = (words & np.uint64(63)).astype(np.int64) - 32
    exponents = (words >> np.uint64(40)).astype(np.int64) % (2 * size + 1) - size
    return np.ldexp(digits / 32, exponents.astype(np.int32)).astype(np.float32).reshape(shape)


def _feed(hashed, value) -> None:
    if isinstance(value, (tuple, list)):
        for part in value:
            _feed(hashed, part)
    elif isinstance(value, sn.Array):
        hashed.update(f"Array {value.format}".encode())
        _feed(hashed, value.codes)
    elif isinstance(value, sn.BlockArray):
        hashed.update(f"BlockArray {value.format}".encode())
        _feed(hashed, (value.codes, value.scales))
    elif isinstance(value, (np.ndarray, np.generic)):
        array = np.ascontiguousarray(value)
        hashed.update(f"{array.dtype.str} {array.shape}".encode())
        if array.dtype == object:
            hashed.update(repr(array.tolist()).encode())
        else:
            hashed.update(array.tobytes())
    else:
        hashed.update(repr(value).encode())


def digest(*values) -> str:
    """16 hexadecimal digits of arrays' types, shapes and bits, and of the text of anything else."""
    hashed = hashlib.sha256()
    _feed(hashed, values)
    return hashed.hexdigest()[:16]


def outcome(function, *arguments, **options) -> str:
    """The digest of what a call returns, or its error, in words."""
    with np.errstate(all="ignore"):
        try:
            return digest(function(*arguments, **options))
        except (ValueError, TypeError) as error:
            return f"{type(error).__name__}: {str(error)[:160]}"
