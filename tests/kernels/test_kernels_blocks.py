"""Block formats on CUDA arrays: codes, scales and values are the CPU's."""

import numpy as np
import pytest

import softnum as sn
from softnum.blocks import SCALE_RULES
from softnum.formats import FloatFormat
from softnum.kernels import launches
from softnum.kernels.device import _cuda
from softnum.kernels.device.block_entries import element_way, value_way

SMALL_SCALES = FloatFormat(5, 0, signed=False, specials="fn", has_zero=False, lowest_binade="normal")
FORMATS = {
    **{name: sn.format(name) for name in sn.block_format_names()},
    "fixed": sn.BlockFormat("q1.3", "e8m0fnu", 4),
    "whole axis": sn.BlockFormat("q1.15", "e8m0fnu", None),
    "few scales": sn.BlockFormat("q3.2", SMALL_SCALES, 3),
    "no subnormals": sn.BlockFormat(FloatFormat(1, 4, specials="none"), "e8m0fnu", 8),
    "scales of binary32": sn.BlockFormat("e4m3fn", "binary32", 16),
    "scales of e5m2": sn.BlockFormat("e2m1fn", "e5m2", 16),
    "scales with zeros": sn.BlockFormat("e5m2fnuz", "e4m3", 5),
    "long elements": sn.BlockFormat("binary16", "e8m0fnu", 7),
    "unsigned": sn.BlockFormat("uq1.7", "uq8.4", 6),
    "tensor of bfloat16": sn.BlockFormat("q2.6", "e5m2", 16, tensor_scale="bfloat16"),
    "powers and a tensor scale": sn.BlockFormat("e2m1fn", "e8m0fnu", 16, tensor_scale="binary32"),
    "binary32": sn.BlockFormat("binary32", "e4m3fn", 16),
    "fixed of 40 bits": sn.BlockFormat("q8.32", "e5m2", 16),
    "scales below 1": sn.BlockFormat("e5m2", FloatFormat(4, 0, signed=False, specials="fn", has_zero=False,
                                                         lowest_binade="normal", bias=40), 4),
}  # fmt: skip
MODES = ["nearest_away", "toward_zero", "up", "down", "to_odd", "away_from_zero", "stochastic", "stochastic_even"]


def values(fmt, shape, dtype=np.float32, seed=1, spread=8):
    """Numbers around ties and powers of two, zeros of both signs, blocks of zeros, and the ends of the type."""
    rng = np.random.default_rng(seed)
    digits, count = min(fmt.element.bits, 20), int(np.prod(shape))
    x = rng.choice([-1.0, 1.0], count) * rng.integers(1 << digits, 2 << digits, count) / float(1 << digits)
    x *= (1 + rng.choice([0, 0, 2.0**-20, -(2.0**-20)], count)) * 2.0 ** rng.integers(-spread, spread, count)
    x[rng.random(count) < 0.2] = 0
    x[rng.random(count) < 0.1] *= -0.0
    x = x.reshape(shape) * 2.0 ** rng.integers(-10, 10)
    return (np.abs(x) if not fmt.element.signed else x).astype(dtype)


def special(fmt, dtype, rows=8, columns=37):
    """Rows of what is special: zeros, the smallest and the largest numbers, infinities and NaNs in some blocks."""
    x = values(fmt, (rows, columns), dtype, 2)
    info = np.finfo(dtype)
    x[0] = 0
    x[1] = info.smallest_subnormal * np.arange(columns)
    x[2] = x[3] * info.smallest_normal
    x[4, ::3] = info.max
    if fmt.scale.has_nan:
        x[5, 3], x[6, columns - 1], x[7, 1] = np.inf, np.nan, -np.inf
    return np.abs(x) if not fmt.element.signed else x


def host(x):
    return x.copy_to_host() if hasattr(x, "copy_to_host") else x


def same(got, want, *what):
    """Bits of arrays, or of tuples of them."""
    if isinstance(want, tuple):
        assert len(got) == len(want), what
        for one, other in zip(got, want, strict=True):
            same(host(one), np.asarray(other), *what)
        return
    got, kind = np.asarray(host(got)), f"u{want.dtype.itemsize}"
    assert got.dtype == want.dtype and got.shape == want.shape, what
    wrong = np.argwhere(got.view(kind) != want.view(kind))
    assert not len(wrong), [*what, len(wrong), *((tuple(i), got[tuple(i)], want[tuple(i)]) for i in wrong[:5])]


def outcome(work):
    """What comes of a call: a result, or what the error says."""
    try:
        return work()
    except (TypeError, ValueError) as error:
        return type(error), str(error)


def check(x, fmt, axis=-1, **options):
    """encode, decode and quantize on the device give what they give on the CPU."""
    on_device = _cuda.to_device(x)
    want = outcome(lambda: sn.encode(x, fmt, axis=axis, **options))
    got = outcome(lambda: sn.encode(on_device, fmt, axis=axis, **options))
    if isinstance(want[0], type):
        assert got == want
        return
    same(got, want, fmt, axis, options)
    dtypes = (x.dtype, np.dtype(np.float32 if x.dtype == np.float64 else np.float64))
    for call, at, host_at, dtype in (
        (lambda y, t: sn.quantize(y, fmt, axis=axis, **options), on_device, x, dtypes[0]),
        (lambda y, t: sn.decode(y, fmt, t, axis=axis), got, want, dtypes[0]),
        (lambda y, t: sn.decode(y, fmt, t, axis=axis), got, want, dtypes[1]),
    ):
        wanted, found = outcome(lambda: call(host_at, dtype)), outcome(lambda: call(at, dtype))
        if isinstance(wanted, tuple):
            assert found == wanted
        else:
            same(found, wanted, fmt, axis, options, dtype)


def rules_of(fmt):
    return ["max", "rceil"] if fmt.tensor_scale is not None else list(SCALE_RULES)


@pytest.mark.parametrize("name", FORMATS)
def test_formats_and_rules(device, name):
    fmt = FORMATS[name]
    for i, rule in enumerate([None, *rules_of(fmt)]):
        dtype = (np.float32, np.float64)[i % 2]
        check(values(fmt, (3, 41), dtype), fmt, scale_rule=rule)
        check(values(fmt, (37, 3), dtype), fmt, 0, scale_rule=rule)


@pytest.mark.parametrize("name", FORMATS)
def test_special_values(device, name):
    fmt = FORMATS[name]
    for dtype in (np.float32, np.float64):
        check(special(fmt, dtype), fmt)
